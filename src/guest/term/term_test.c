// SPDX-License-Identifier: Apache-2.0
/* term_test.c — what sequences leave in the text: rows of bytes and text, each fed whole, byte by
 * byte and in pieces. Line ends are CR LF as a pty makes them. */
#include "base/rng.h"
#include "test/test.h"
#include "guest/term/term_kit.h"

struct row {
    const char *name;
    struct str bytes;
    const char *text;
};

#define CASE(name, bytes, text)                                                                    \
    {                                                                                              \
        name, STR_INIT(bytes), text                                                                \
    }

/* 1000 columns, 1000 rows */
static const struct row large[] = {
    CASE("nothing", "", ""),
    CASE("plain", "hello", "hello"),
    CASE("lines", "one\r\ntwo\r\n", "one\ntwo"),
    CASE("a bare line feed goes straight down", "ab\ncd", "ab\n  cd"),
    CASE("new-line mode", "\033[20hab\ncd", "ab\ncd"),
    CASE("new-line mode off again", "\033[20h\033[20lab\ncd", "ab\n  cd"),
    CASE("vertical tab and form feed are line feeds", "a\r\vb\r\fc", "a\nb\nc"),
    CASE("empty lines inside stay", "a\r\n\r\n\r\nb", "a\n\n\nb"),
    CASE("empty lines before stay", "\r\n\r\na", "\n\na"),
    CASE("empty lines at the end go", "a\r\n\r\n  \r\n", "a"),
    CASE("trailing blanks go", "a   \r\nb \t \r\n", "a\nb"),
    CASE("leading blanks stay", "  a", "  a"),
    CASE("NUL, BEL and DEL leave nothing", "a\0b\ac\177d", "abcd"),
    CASE("other controls leave nothing", "a\001\002\005\006\020\021\022\023b", "ab"),
    /* overwriting */
    CASE("carriage return overwrites", "x\rY\r\n", "Y"),
    CASE("a shorter text leaves the rest", "hello\rJ", "Jello"),
    CASE("backspace moves left", "abc\b\bX", "aXc"),
    CASE("backspace stops at the edge", "\b\b\ba\b\b\bb", "b"),
    CASE("rub out", "abc\b \b\b \b", "a"),
    CASE("bold and underline of old", "b\bbo\bol\bld\bd _\bu", "bold u"),
    /* tabs */
    CASE("tab", "a\tb", "a       b"),
    CASE("tab at a stop goes to the next", "12345678\tx", "12345678        x"),
    CASE("tab before a stop", "1234567\tx", "1234567 x"),
    CASE("tab does not erase", "abcdefghij\r\tX", "abcdefghXj"),
    CASE("HTS sets a stop", "abc\033H\r\tX", "abcX"),
    CASE("TBC clears one stop", "\033[9G\033[g\r\tX", "                X"),
    CASE("tabs forward by number", "\033[2IX", "                X"),
    CASE("tabs backward", "\033[20G\033[ZX\033[2ZY", "        Y       X"),
    CASE("tab back stops at the edge", "ab\033[9ZX", "Xb"),
    /* moving */
    CASE("cursor up and down", "a\r\nb\033[AX\033[BY", "aX\nb Y"),
    CASE("cursor up stops at the top", "a\033[99Ab", "ab"),
    CASE("cursor right leaves blanks", "a\033[3Cb", "a   b"),
    CASE("cursor left", "abc\033[2DX", "aXc"),
    CASE("zero counts as one", "abc\033[0DX", "abX"),
    CASE("next line, previous line", "ab\033[Ecd\033[FX", "Xb\ncd"),
    CASE("column", "abcdef\033[3GX\033[5`Y", "abXdYf"),
    CASE("row", "a\033[3db", "a\n\n b"),
    CASE("position", "\033[2;3Hx\033[1;1fy", "y\n  x"),
    CASE("position without numbers is home", "abc\033[HX", "Xbc"),
    CASE("position with only a column", "abc\r\n\033[;3HX", "abX"),
    CASE("HPR and VPR", "a\033[2ab\033[ec", "a  b\n    c"),
    CASE("save and restore", "ab\0337cd\r\nef\0338X", "abXd\nef"),
    CASE("save and restore, CSI", "ab\033[scd\r\nef\033[uX", "abXd\nef"),
    CASE("save and restore, mode 1048", "ab\033[?1048hcd\033[?1048lX", "abXd"),
    CASE("restore without save goes home", "abc\0338X", "Xbc"),
    CASE("IND", "a\033Db", "a\n b"),
    CASE("NEL", "a\033Eb", "a\nb"),
    CASE("RI", "a\r\nb\033MX", "aX\nb"),
    CASE("RI at the top scrolls down", "a\r\033Mb", "b\na"),
    /* erasing */
    CASE("erase to the end of the line", "hello\r\033[Kab", "ab"),
    CASE("erase to the end from inside", "hello\033[3D\033[K", "he"),
    CASE("erase to the start", "hello\033[3D\033[1K", "   lo"),
    CASE("erase the line", "hello\033[2Kx", "     x"),
    CASE("selective erase erases", "hello\r\033[?K", ""),
    CASE("erase below", "a\r\nb\r\nc\033[2A\033[J", "a"),
    CASE("erase below from inside", "abc\r\ndef\033[A\033[2D\033[0Jx", "ax"),
    CASE("erase above", "abc\r\ndef\033[2D\033[1J", "\n  f"),
    CASE("erase characters", "abcdef\r\033[2C\033[2X", "ab  ef"),
    CASE("erase more characters than there are", "abc\033[2D\033[99X", "a"),
    CASE("delete characters", "abcdef\r\033[2C\033[2P", "abef"),
    CASE("delete more than there are", "abc\033[2D\033[99P", "a"),
    CASE("insert blanks", "abc\033[2D\033[2@", "a  bc"),
    CASE("insert mode", "ac\b\033[4hb\033[4l\033[DX", "aXc"),
    CASE("insert lines", "a\r\nb\033[Lx", "a\nx\nb"),
    CASE("delete lines", "a\r\nb\r\nc\033[2A\033[2Mx", "x"),
    CASE("delete a line between", "a\r\nb\r\nc\033[A\033[M", "a\nc"),
    CASE("scroll up", "a\r\nb\033[Sc", "a\nb\n c"),
    CASE("scroll down", "a\r\nb\033[Tc", "\nac\nb"),
    /* what was drawn stays */
    CASE("clear", "a\r\nb\r\n\033[H\033[2J\033[3Jc", "a\nb\nc"),
    CASE("clear in the other order", "a\r\nb\r\n\033[2J\033[Hc", "a\nb\nc"),
    CASE("clear by erasing below home", "a\r\nb\r\n\033[H\033[Jc", "a\nb\nc"),
    CASE("clear of nothing", "\033[H\033[2J\033[3J", ""),
    CASE("clear twice", "a\033[H\033[2J\033[H\033[2Jb", "a\nb"),
    CASE("erasing the history does nothing", "a\r\n\033[3Jb", "a\nb"),
    CASE("clear leaves the cursor", "ab\033[2Jc", "ab\n  c"),
    CASE("full reset", "a\r\n\033cb", "a\nb"),
    CASE("reset forgets modes", "\033(0\033[4h\033[?7l\033cqa\bb", "qb"),
    CASE("soft reset forgets modes", "\033(0\033[4h\033[!pqa\bb", "qb"),
    CASE("moving up after clear does not reach above", "a\r\n\033[H\033[2J\033[9Ab", "a\nb"),
    CASE("home redraws what was drawn since", "old\033[H\033[2Ja1\r\nb1\033[Ha2\r\nb2",
         "old\na2\nb2"),
    /* progress */
    CASE("pip", "  10%\r  50%\r 100%\r\ndone", " 100%\ndone"),
    CASE("wget with erase", "10% [>  ]\r\033[K100% [==>]\033[K\r\n", "100% [==>]"),
    CASE("spinner", "|\b/\b-\b\\\bdone", "done"),
    CASE("cargo",
         "Compiling a\r\n\033[KBuilding [=> ] 1/2\rCompiling b\033[K\r\n\033[KBuilding [==] "
         "2/2\r\033[K"
         "Finished\r\n",
         "Compiling a\nCompiling b\nFinished"),
    CASE("docker: lines redrawn from below",
         "a: wait\r\nb: wait\r\n\033[2A\033[2Ka: pull\r\033[2B\033[1A\033[2Kb: pull\r\033[1B"
         "\033[2A\033[2Ka: done\r\033[2Bend",
         "a: done\nb: pull\nend"),
    CASE("npm: erase below and draw again", "x\r\ny\r\n\033[2A\033[Jx2\r\ny2\r\n\033[2A\033[Jz\r\n",
         "z"),
    CASE("home and erase below is a clear, moving up and erasing is not",
         "a\r\n\033[H\033[m\033[?25l\033[Jb\r\n\033[A\033[Jc\r\n\033[F\033[Jd\r\033[Je", "a\ne"),
    CASE("npm: line by line", "one\r\ntwo\033[2K\033[1A\033[2K\033[Gthree", "three"),
    CASE("top: home, lines, erase below",
         "\033[H\033[Jload 1\033[K\r\npid a\033[K\r\npid b\033[K\r\n\033[J"
         "\033[Hload 2\033[K\r\npid c\033[K\r\n\033[J",
         "load 2\npid c"),
    CASE("cursor hidden and shown", "\033[?25l50%\r\033[?25h100%", "100%"),
    /* alternate screen */
    CASE("alternate screen goes", "a\r\n\033[?1049hfull\r\nscreen\033[?1049lb", "a\nb"),
    CASE("alternate screen while shown", "a\r\n\033[?1049h\033[Hfull\r\nscreen", "a\nfull\nscreen"),
    CASE("alternate screen 47", "a\r\n\0337\033[?47h\033[5;5Hfull\033[2J\033[?47l\0338b", "a\nb"),
    CASE("alternate screen 1047", "ab\033[?1047h\033[Hfull\033[?1047lc", "abc"),
    CASE("alternate screen starts empty each time",
         "\033[?1049h\033[Hone\033[?1049l\033[?1049h\033[H\r\ntwo", "\ntwo"),
    CASE("entering twice is once", "a\033[?1049h\033[?1049hx\033[?1049lb", "ab"),
    CASE("leaving what was not entered", "ab\033[?1049l\033[?47lc", "abc"),
    CASE("clear in the alternate screen keeps nothing", "a\033[?1049hx\033[2J\033[?1049l", "a"),
    CASE("full reset leaves the alternate screen", "a\r\n\033[?1049hx\033cb", "a\nb"),
    CASE(
        "vim",
        "$ vim "
        "x\r\n\033[?1049h\033[22;0;0t\033[>4;2m\033[?1h\033=\033[?2004h\033[1;24r\033[?12h\033[?12l"
        "\033[22;2t\033[22;1t\033[29m\033[m\033[H\033[2J\033[?25l\033[24;1H\"x\" 1L, "
        "6B\033[2;1H\xe2\x96\xbd\033[6n\033[2;1H  "
        "\033[3;1H\033Pzz\033\\\033[0%m\033[6n\033[3;1H           "
        "\033[1;1H\033[>c\033]10;?\007\033]11;?\007"
        "\033[1;1Hhello\033[2;1H\033[94m~\033[0m\033[?25h\033[24;1H\033[K:q\r\033[?2004l\033[>4;"
        "m\033[23;2t"
        "\033[24;1H\033[K\033[24;1H\033[?1l\033>\033[?1049l\033[23;0;0t\033[?25h\033[>4;m$ ",
        "$ vim x\n$"),
    CASE("less",
         "$ less x\r\n\033[?1049h\033[22;0;0t\033[?1h\033=\rone\r\ntwo\r\n\033[7mx "
         "(END)\033[27m\033[K\r\033[K"
         "\033[H\033M\033[HzerO\r\n\033[24;1H\r\033[K\033[?1l\033>\033[?1049l\033[23;0;0tdone",
         "$ less x\ndone"),
    CASE("less while shown",
         "$ less x\r\n\033[?1049h\033[H\033[?1h\033=\rone\r\ntwo\r\n\033[7m(END)\033[27m\033[K",
         "$ less x\none\ntwo\n(END)"),
    /* what leaves no trace */
    CASE("colours", "\033[31mred\033[0m \033[1;38;5;208mx\033[48;2;1;2;3my\033[m", "red xy"),
    CASE("colours with colons", "\033[38:2::1:2:3mx\033[4:3my", "xy"),
    CASE("a colon makes others nothing", "ab\033[2:1Dc", "abc"),
    CASE("title", "\033]0;title\007a\033]2;other\033\\b", "ab"),
    CASE("hyperlink", "\033]8;id=1;https://example.org/\033\\text\033]8;;\033\\!", "text!"),
    CASE("shell integration", "\033]133;A\007$ \033]133;B\007ls", "$ ls"),
    CASE("UTF-8 in a title", "\033]0;\xe2\x9c\xb3 \xc3\xa9\007a", "a"),
    CASE("DCS", "a\033Pq#0;2;0;0;0#0~~@@vv\r\nmore\033\\b", "ab"),
    CASE("APC, PM, SOS", "a\033_Gf=24;AAAA\033\\b\033^private\033\\c\033Xsos\033\\d", "abcd"),
    CASE("screen's title", "\033kname\033\\a", "a"),
    CASE("an unfinished title ends with its line", "\033]0;never ends\r\nnext", "\nnext"),
    CASE("CAN and SUB end a sequence", "\033[12\030a\033]0;x\032b", "ab"),
    CASE("ESC starts anew", "\033[12\033[mx\033]0;t\033[my", "xy"),
    CASE("controls work inside a sequence", "ab\033[\r1Cc", "ac"),
    CASE("a broken sequence does not swallow UTF-8", "\033[1\xc3\xa9x", "\xc3\xa9x"),
    CASE("modes of no concern",
         "\033[?2004h\033[?1000;1006h\033[?2026h\033[?1h\033=\033>a\033[?2004l", "a"),
    CASE("kitty's keyboard, xterm's keys", "ab\033[>1u\033[<u\033[?u\033[=1;1u\033[>4;2mc", "abc"),
    CASE("cursor shape and window size", "ab\033[4 q\033[8;24;80t\033[22;0tc", "abc"),
    CASE("character sets of no concern", "\033%G\033(Ba\033*0\033+0\033#8\033 Fb", "ab"),
    CASE("many parameters", "\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20mx", "x"),
    CASE("a large parameter", "a\033[99999999999999999999Db", "b"),
    CASE("no line drawing", "qqx", "qqx"),
    CASE("line drawing", "\033(0lqk\r\nx x\r\nmqj\033(B\r\nq",
         "\xe2\x94\x8c\xe2\x94\x80\xe2\x94\x90\n\xe2\x94\x82 "
         "\xe2\x94\x82\n\xe2\x94\x94\xe2\x94\x80\xe2\x94\x98\nq"),
    CASE("line drawing in G1", "\033)0q\016q\017q", "q\xe2\x94\x80q"),
    CASE("line drawing keeps the rest", "\033(0ABC 123", "ABC 123"),
    CASE("repeat", "a\033[3bb", "aaaab"),
    CASE("repeat a wide one", "\xe4\xb8\xad\033[2b!", "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad!"),
    CASE("repeat of nothing", "\033[5bx", "x"),
    CASE("looks like a prompt of ours", "###PS1END###\r\n\033]133;D\007x", "###PS1END###\nx"),
    /* characters */
    CASE("UTF-8", "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80",
         "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80"),
    CASE("wide is two columns", "\xe4\xb8\xad\xe6\x96\x87\b\bX", "\xe4\xb8\xadX"),
    CASE("overwriting the left half", "\xe4\xb8\xad\rX", "X"),
    CASE("overwriting the right half", "\xe4\xb8\xad\033[2GX", " X"),
    CASE("a wide one over two halves", "\xe4\xb8\xad\xe6\x96\x87\033[2G\xe5\xad\x97!",
         " \xe5\xad\x97!"),
    CASE("erasing half of a wide one",
         "a\xe4\xb8\xad"
         "b\033[3G\033[Kx",
         "a x"),
    CASE("deleting half of a wide one",
         "\xe4\xb8\xad"
         "b\r\033[Px",
         "xb"),
    CASE("inserting inside a wide one",
         "\xe4\xb8\xad"
         "b\033[2G\033[@x",
         " x b"),
    CASE("emoji is two columns", "\xf0\x9f\x98\x80\033[3GX", "\xf0\x9f\x98\x80X"),
    CASE("combining joins", "e\xcc\x81x\033[2GY", "e\xcc\x81Y"),
    CASE("two marks",
         "a\xcc\x81\xcc\xa3"
         "b",
         "a\xcc\x81\xcc\xa3"
         "b"),
    CASE("marks go with their letter", "e\xcc\x81\rx", "x"),
    CASE("a mark with nothing to join", "\xcc\x81x", "x"),
    CASE("a mark on blank space", "\033[5C\xcc\x81x", "     x"),
    CASE("a mark on a wide one", "\xe3\x81\x8b\xe3\x82\x99\033[3GX", "\xe3\x81\x8b\xe3\x82\x99X"),
    CASE("variation selector", "\xe2\x9d\xa4\xef\xb8\x8f!", "\xe2\x9d\xa4\xef\xb8\x8f!"),
    CASE("a family is one",
         "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\033[3GX",
         "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7X"),
    CASE("skin tone joins", "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd\033[3GX",
         "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbdX"),
    CASE("a joiner between letters joins no cells",
         "a\xe2\x80\x8d"
         "b\033[2GX",
         "a\xe2\x80\x8dX"),
    CASE("Hangul in parts", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\033[3GX",
         "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xabX"),
    CASE("a byte order mark at the start", "\xef\xbb\xbfx", "x"),
    CASE("eight-bit controls leave nothing",
         "a\xc2\x9b"
         "31mb\xc2\x85",
         "a31mb"),
    CASE("a stray byte",
         "a\xff"
         "b\x80"
         "c",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"
         "c"),
    CASE("a character cut short",
         "a\xe2\x82"
         "b",
         "a\xef\xbf\xbd"
         "b"),
    CASE("cut short by an escape", "\xf0\x9f\x98\033[mx", "\xef\xbf\xbdx"),
    CASE("cut short by a newline", "\xe2\r\nx", "\xef\xbf\xbd\nx"),
    CASE("cut short by another", "\xe2\x82\xc3\xa9", "\xef\xbf\xbd\xc3\xa9"),
    CASE("overlong and surrogate, as Python", "\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80",
         "\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
    CASE("Latin-1", "caf\xe9!", "caf\xef\xbf\xbd!"),
    CASE("an unfinished one is not shown yet", "a\xe2\x82", "a"),
};

/* 10 columns, 4 rows */
static const struct row small[] = {
    CASE("a wrapped line is one line", "0123456789abcde\r\nx", "0123456789abcde\nx"),
    CASE("a line of the width takes one row", "0123456789\r\nx", "0123456789\nx"),
    CASE("a line of twice the width", "0123456789abcdefghij\r\nx", "0123456789abcdefghij\nx"),
    CASE("wrapped over the whole screen",
         "0123456789abcdefghijABCDEFGHIJabcdefghij0123456789xyz\r\n!",
         "0123456789abcdefghijABCDEFGHIJabcdefghij0123456789xyz\n!"),
    CASE("blanks at the wrap stay", "12345678   9", "12345678   9"),
    CASE("a wrapped line of blanks", "x                             ", "x"),
    CASE("blanks that scrolled out return", "x                                                 y",
         "x                                                 y"),
    CASE("blanks that scrolled out go", "x                                                  \r\ny",
         "x\ny"),
    CASE("rubbing out the end of a wrap unwraps it", "0123456789ab\033[A\033[Kx", "01x\nab"),
    CASE("a row erased whole starts a line", "0123456789ab\r\033[Knew", "0123456789\nnew"),
    CASE("so does one after a line that scrolled out", "\033[4;1H0123456789ab\033[2K\rnew",
         "\n\n\n0123456789\nnew"),
    CASE("carriage return at the edge", "0123456789\rX", "X123456789"),
    CASE("backspace at the edge", "0123456789\bX", "01234567X9"),
    CASE("erase at the edge keeps", "0123456789\033[Kx", "0123456789x"),
    CASE("tab at the edge keeps", "0123456789\tx", "0123456789x"),
    CASE("tab to the last column", "12345678\tx\r\ny", "12345678 x\ny"),
    CASE("TBC 3 clears all", "\033[3g\r\tX\r\033[4G\033H\r\tY", "   Y     X"),
    CASE("no wrap", "\033[?7l0123456789abc\r\nx", "012345678c\nx"),
    CASE("no wrap, wide", "\033[?7l0123456789\xe4\xb8\xad", "01234567\xe4\xb8\xad"),
    CASE("wrap again", "\033[?7l0123456789abc\033[?7hd\r\n", "012345678d"),
    CASE("a wide one wraps whole", "012345678\xe4\xb8\xad!", "012345678\xe4\xb8\xad!"),
    CASE("a wide one takes nothing along", "012345678X\033[10G\xe4\xb8\xad!",
         "012345678\xe4\xb8\xad!"),
    CASE("a mark at the edge does not wrap", "012345678e\xcc\x81\r\nx", "012345678e\xcc\x81\nx"),
    CASE("an emoji sequence at the edge",
         "01234567\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\r\nx",
         "01234567\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\nx"),
    CASE("insert pushes off the edge", "0123456789\r\033[3@ab", "ab 0123456"),
    CASE("insert pushes half a wide one off", "01234567\xe4\xb8\xad\r\033[@x", "x01234567"),
    CASE("scrolled lines stay", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "1\n2\n3\n4\n5\n6"),
    CASE("home after scrolling", "1\r\n2\r\n3\r\n4\r\n5\r\n6\033[HX", "1\n2\nX\n4\n5\n6"),
    CASE("up stops at the top of the screen", "1\r\n2\r\n3\r\n4\r\n5\033[9A\rX", "1\nX\n3\n4\n5"),
    CASE("down stops at the bottom", "1\033[9B\r2", "1\n\n\n2"),
    CASE("right stops at the edge", "1\033[99Cx\r\ny", "1        x\ny"),
    CASE("position beyond the screen", "\033[99;99Hx\r\ny", "\n\n\n         x\ny"),
    CASE("repeat stops at the edge", "a\033[99bb", "aaaaaaaaaab"),
    CASE("repeat stops at the edge, wide", "\xe4\xb8\xad\033[99b!",
         "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad!"),
    CASE("repeat at the edge", "0123456789\033[9bx", "0123456789x"),
    CASE("clear after scrolling", "1\r\n2\r\n3\r\n4\r\n5\033[H\033[2J6\r\n7",
         "1\n2\n3\n4\n5\n6\n7"),
    CASE("clear ends a wrapped line", "0123456789ab\033[2J\033[Hx", "0123456789ab\nx"),
    CASE("clear ends a line that scrolled out",
         "0123456789abcdefghij0123456789abcdefghij12345\033[2J\033[Hx",
         "0123456789abcdefghij0123456789abcdefghij12345\nx"),
    CASE("scroll up keeps", "1\r\n2\r\n3\r\n4\033[2S\033[Hx", "1\n2\nx\n4"),
    CASE("scroll up by more than there is", "1\r\n2\033[9S\033[Hx", "1\n2\nx"),
    CASE("scroll down loses below", "1\r\n2\r\n3\r\n4\033[2T", "\n\n1\n2"),
    CASE("margins: scrolled lines stay, the footer stands",
         "\033[4;1Hfoot\033[1;3r\033[H1\r\n2\r\n3\r\n4\r\n5", "1\n2\n3\n4\n5\nfoot"),
    CASE("margins: a header stands", "head\033[2;4r\033[2;1H1\r\n2\r\n3\r\n4", "1\nhead\n2\n3\n4"),
    CASE("margins: index at the bottom", "1\r\n2\r\n3\r\n4\033[2;3r\033[3;1H\033Dx",
         "2\n1\n3\nx\n4"),
    CASE("margins: reverse index at the top", "1\r\n2\r\n3\r\n4\033[2;3r\033[2;1H\033Mx",
         "1\nx\n2\n4"),
    CASE("margins: below them nothing scrolls", "\033[1;2r\033[4;1Ha\r\nb", "\n\n\nb"),
    CASE("margins: insert lines", "1\r\n2\r\n3\r\n4\033[1;3r\033[2;1H\033[Lx", "1\nx\n2\n4"),
    CASE("margins: delete lines", "1\r\n2\r\n3\r\n4\033[1;3r\033[2;1H\033[Mx", "1\nx\n\n4"),
    CASE("margins: no lines outside", "1\r\n2\r\n3\r\n4\033[1;2r\033[4;1H\033[L\033[Mx",
         "1\n2\n3\nx"),
    CASE("margins: movement stops at them", "\033[2;3r\033[2;1H\033[9Aa\033[9Bb", "\na\n b"),
    CASE("margins: wrong ones are ignored", "\033[3;2r1\r\n2\r\n3\r\n4\r\n5", "1\n2\n3\n4\n5"),
    CASE("margins: wrapping inside", "\033[2;3r\033[2;1H0123456789abc", "\n0123456789abc"),
    CASE("origin mode", "\033[2;3r\033[?6hx\033[9;1Hy\033[?6l\033[Hz", "z\nx\ny"),
    CASE("origin mode is saved", "\033[2;3r\033[?6h\0337\033[?6l\0338\033[2;1Hx", "\n\nx"),
    CASE("reverse index cuts a wrapped line",
         "0123456789abcdefghij0123456789abcdefghijAB\033[H\033Mx",
         "0123456789\nx\nabcdefghij0123456789abcdefghij"),
    CASE("insert lines cuts a wrapped line", "0123456789ab\033[Lx", "0123456789\nx\nab"),
    CASE("the alternate screen does not scroll into history",
         "a\r\n\033[?1049h1\r\n2\r\n3\r\n4\r\n5\r\n6\033[?1049lb", "a\nb"),
    CASE("the alternate screen forgets margins",
         "\033[?1049h\033[2;3r\033[?1049l1\r\n2\r\n3\r\n4\r\n5", "1\n2\n3\n4\n5"),
    CASE("insert mode wraps", "\033[4h0123456789ab", "0123456789ab"),
    CASE("line drawing wraps", "\033(0qqqqqqqqqqqq",
         "\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2"
         "\x94\x80"
         "\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80\xe2\x94\x80"),
};

static void feed_pieces(struct term *t, struct str bytes, struct rng *r, size_t longest)
{
    while (bytes.len) {
        struct str piece = str_first(bytes, 1 + rng_below(r, longest));
        term_feed(t, piece);
        bytes = str_from(bytes, piece.len);
    }
}

static void check_rows(const struct row *rows, size_t count, const struct term_config *config)
{
    struct rng_fixed fixed;
    struct rng *rng = rng_fixed_init(&fixed, 1);

    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        struct str want = str_of(r->text);
        own(term) t = term_new(config);
        term_feed(t, r->bytes);
        check_text(t, r->name, "whole", want);
        for (size_t longest = 1; longest <= 9; longest += 2) {
            term_reset(t);
            feed_pieces(t, r->bytes, rng, longest);
            check_text(t, r->name, longest == 1 ? "byte by byte" : "in pieces", want);
        }
    }
}

TEST(term_renders_each_row_however_it_is_split)
{
    check_rows(large, ARRAY_LEN(large), &(struct term_config){0});
}

TEST(term_renders_a_small_screen_the_same_way)
{
    check_rows(small, ARRAY_LEN(small), &small_size);
}

TEST(term_resize_keeps_the_text_and_draws_on_by_the_new_size)
{
    own(term) t = term_new(&small_size);

    term_feed(t, STR("abcdefghijKL\r\none\r\ntwo\r\nthree\r\nfour\r\nname: "));
    check_text(t, "before", "", STR("abcdefghijKL\none\ntwo\nthree\nfour\nname:"));
    CHECK(term_resize(t, 20, 8));
    check_text(t, "wider", "", STR("abcdefghijKL\none\ntwo\nthree\nfour\nname:"));
    term_feed(t, STR("x\r\n0123456789abcde\r\n"));
    check_text(t, "wider", "drawn on",
               STR("abcdefghijKL\none\ntwo\nthree\nfour\nname: x\n0123456789abcde"));
    term_feed(t, STR("\033[?1049h\033[Hfull"));
    CHECK(term_resize(t, 5, 2)); /* what runs draws its screen again */
    term_feed(t, STR("\033[Hredrawn\033[?1049l\r\nend"));
    check_text(t, "narrow", "",
               STR("abcdefghijKL\none\ntwo\nthree\nfour\nname: x\n0123456789abcde\n\nend"));
}
