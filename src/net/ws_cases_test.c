// SPDX-License-Identifier: Apache-2.0
/* ws_cases_test.c — the table and the little language it is written in; see ws_cases.h. Families
 * are numbered as in the Autobahn suite, so that its reports can be read beside ours. */
#include "net/ws_cases.h"

#include <ctype.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/own.h"
#include "test/test.h"

const struct ws_case ws_cases[] = {
    {"1.1.1 text of 0 bytes", "81*0", "T:", 0},
    {"1.1.2 text of 1 bytes", "81*1", "T*1", 0},
    {"1.1.3 text of 125 bytes", "81*125", "T*125", 0},
    {"1.1.4 text of 126 bytes", "81*126", "T*126", 0},
    {"1.1.5 text of 127 bytes", "81*127", "T*127", 0},
    {"1.1.6 text of 128 bytes", "81*128", "T*128", 0},
    {"1.1.7 text of 65535 bytes", "81*65535", "T*65535", CASE_CODEC},
    {"1.1.8 text of 65536 bytes", "81*65536", "T*65536", CASE_CODEC},
    {"1.1.9 text of 131072 bytes", "81*131072", "T*131072", CASE_CODEC},
    {"1.2.1 binary of 0 bytes", "82*0", "B:", 0},
    {"1.2.2 binary of 1 bytes", "82*1", "B*1", 0},
    {"1.2.3 binary of 125 bytes", "82*125", "B*125", 0},
    {"1.2.4 binary of 126 bytes", "82*126", "B*126", 0},
    {"1.2.5 binary of 127 bytes", "82*127", "B*127", 0},
    {"1.2.6 binary of 128 bytes", "82*128", "B*128", 0},
    {"1.2.7 binary of 65535 bytes", "82*65535", "B*65535", CASE_CODEC},
    {"1.2.8 binary of 65536 bytes", "82*65536", "B*65536", CASE_CODEC},
    {"1.2.9 binary of 131072 bytes", "82*131072", "B*131072", CASE_CODEC},
    {"1.3.1 three messages in a row", "81:a|82:b|81:c", "T:a|B:b|T:c", 0},
    {"1.3.2 a length cut off is waited for", "~81", "", 0},
    {"1.3.3 payload cut off is waited for", "81L5;:Hel", "", 0},
    {"1.4.1 two-byte length below 126", "81w:Hello", "X1002", 0},
    {"1.4.2 two-byte length of 125", "81w*125", "X1002", 0},
    {"1.4.3 eight-byte length below 65536", "82W*65535", "X1002", CASE_CODEC},
    {"1.4.4 eight-byte length of 0", "82W:", "X1002", 0},
    {"1.4.5 length with the highest bit", "82L9223372036854775808;:x", "X1002", 0},
    {"1.5.1 mask bit the wrong way round", "81m:Hello", "X1002", 0},
    {"1.5.2 the same on an empty frame", "81m:", "X1002", 0},
    {"1.5.3 the same on a ping", "89m:x", "X1002", 0},
    {"1.5.4 the same after a good message", "81:a|81m:b", "T:a|X1002", 0},
    {"2.1 ping without payload", "89:", "P:", 0},
    {"2.2 ping with text", "89:Hello", "P:Hello", 0},
    {"2.3 ping with binary payload", "89=00fffefdfcfb00ff", "P=00fffefdfcfb00ff", 0},
    {"2.4 ping of 125 bytes", "89*125", "P*125", 0},
    {"2.5 ping of 126 bytes", "89*126", "X1002", 0},
    {"2.6 ping of 65536 bytes", "89L65536;:", "X1002", 0},
    {"2.7 pong nobody asked for", "8a:", "O:", 0},
    {"2.8 pong with payload", "8a:unasked", "O:unasked", 0},
    {"2.9 pong, then ping", "8a:unasked|89:asked", "O:unasked|P:asked", 0},
    {"2.10 ten pings",
     "89:ping-0|89:ping-1|89:ping-2|89:ping-3|89:ping-4|89:ping-5|89:ping-6|89:ping-7|89:ping-8|89:"
     "ping-9",
     "P:ping-0|P:ping-1|P:ping-2|P:ping-3|P:ping-4|P:ping-5|P:ping-6|P:ping-7|P:ping-8|P:ping-9",
     0},
    {"2.11 pong of 126 bytes", "8a*126", "X1002", 0},
    {"2.12 ping in two-byte length form", "89w:Hello", "X1002", 0},
    {"3.1.1 text with reserved bits 1", "91:Hello", "X1002", 0},
    {"3.1.2 text with reserved bits 2", "a1:Hello", "X1002", 0},
    {"3.1.3 text with reserved bits 3", "b1:Hello", "X1002", 0},
    {"3.1.4 text with reserved bits 4", "c1:Hello", "X1002", 0},
    {"3.1.5 text with reserved bits 5", "d1:Hello", "X1002", 0},
    {"3.1.6 text with reserved bits 6", "e1:Hello", "X1002", 0},
    {"3.1.7 text with reserved bits 7", "f1:Hello", "X1002", 0},
    {"3.2.1 ping with reserved bits 1", "99:Hello", "X1002", 0},
    {"3.3.1 close with reserved bits 1", "98#1000", "X1002", 0},
    {"3.4.1 reserved bits 1 after a message", "81:Hello|92:x|89:", "T:Hello|X1002", 0},
    {"3.2.2 ping with reserved bits 2", "a9:Hello", "X1002", 0},
    {"3.3.2 close with reserved bits 2", "a8#1000", "X1002", 0},
    {"3.4.2 reserved bits 2 after a message", "81:Hello|a2:x|89:", "T:Hello|X1002", 0},
    {"3.2.3 ping with reserved bits 4", "c9:Hello", "X1002", 0},
    {"3.3.3 close with reserved bits 4", "c8#1000", "X1002", 0},
    {"3.4.3 reserved bits 4 after a message", "81:Hello|c2:x|89:", "T:Hello|X1002", 0},
    {"3.5.1 reserved bit in a continuation", "01:a|a0:b", "X1002", 0},
    {"3.5.2 the first byte alone is refused", "~b1", "X1002", 0},
    {"4.1.1 opcode 3 without payload", "83:", "X1002", 0},
    {"4.2.1 opcode 3 after a message", "81:Hello|83:x|89:", "T:Hello|X1002", 0},
    {"4.1.2 opcode 4 without payload", "84:", "X1002", 0},
    {"4.2.2 opcode 4 after a message", "81:Hello|84:x|89:", "T:Hello|X1002", 0},
    {"4.1.3 opcode 5 without payload", "85:", "X1002", 0},
    {"4.2.3 opcode 5 after a message", "81:Hello|85:x|89:", "T:Hello|X1002", 0},
    {"4.1.4 opcode 6 without payload", "86:", "X1002", 0},
    {"4.2.4 opcode 6 after a message", "81:Hello|86:x|89:", "T:Hello|X1002", 0},
    {"4.1.5 opcode 7 without payload", "87:", "X1002", 0},
    {"4.2.5 opcode 7 after a message", "81:Hello|87:x|89:", "T:Hello|X1002", 0},
    {"4.1.6 opcode 11 without payload", "8b:", "X1002", 0},
    {"4.2.6 opcode 11 after a message", "81:Hello|8b:x|89:", "T:Hello|X1002", 0},
    {"4.1.7 opcode 12 without payload", "8c:", "X1002", 0},
    {"4.2.7 opcode 12 after a message", "81:Hello|8c:x|89:", "T:Hello|X1002", 0},
    {"4.1.8 opcode 13 without payload", "8d:", "X1002", 0},
    {"4.2.8 opcode 13 after a message", "81:Hello|8d:x|89:", "T:Hello|X1002", 0},
    {"4.1.9 opcode 14 without payload", "8e:", "X1002", 0},
    {"4.2.9 opcode 14 after a message", "81:Hello|8e:x|89:", "T:Hello|X1002", 0},
    {"4.1.10 opcode 15 without payload", "8f:", "X1002", 0},
    {"4.2.10 opcode 15 after a message", "81:Hello|8f:x|89:", "T:Hello|X1002", 0},
    {"5.1 ping in two fragments", "09:a|80:b", "X1002", 0},
    {"5.2 pong in two fragments", "0a:a|80:b", "X1002", 0},
    {"5.3 text in two fragments", "01:Hello|80:-world", "T:Hello-world", 0},
    {"5.4 binary in three fragments", "02:a|00:b|80:c", "B:abc", 0},
    {"5.5 ping between two fragments", "01:a|89:ping|80:b", "P:ping|T:ab", 0},
    {"5.6 pong between two fragments", "01:a|8a:pong|80:b", "O:pong|T:ab", 0},
    {"5.7 pings and pongs between many", "01:a|89:1|00:b|8a:2|00:c|89:3|80:d", "P:1|O:2|P:3|T:abcd",
     0},
    {"5.8 continuation of nothing", "80:a", "X1002", 0},
    {"5.9 continuation of nothing, not the last", "00:a|80:b", "X1002", 0},
    {"5.10 continuation after a whole message", "81:a|80:b", "T:a|X1002", 0},
    {"5.11 text inside a text", "01:a|81:b", "X1002", 0},
    {"5.12 binary inside a text", "01:a|82:b", "X1002", 0},
    {"5.13 new fragments inside fragments", "01:a|01:b", "X1002", 0},
    {"5.14 text inside a binary", "02:a|00:b|81:c", "X1002", 0},
    {"5.15 fragments that are all empty", "01:|00:|80:", "T:", 0},
    {"5.16 empty first and last, text between", "01:|00:middle|80:", "T:middle", 0},
    {"5.17 second message after fragments", "01:a|80:b|01:c|80:d|89:", "T:ab|T:cd|P:", 0},
    {"5.18 close between fragments", "01:a|88#1000|80:b", "C1000:", 0},
    {"5.19 fragments never finished", "01:a|00:b", "", 0},
    {"5.20 reserved opcode between fragments", "01:a|83:b|80:c", "X1002", 0},
    {"5.21 fragmented close", "08#1000|80:", "X1002", 0},
    {"5.22 twenty fragments",
     "02:0|00:1|00:2|00:3|00:4|00:5|00:6|00:7|00:8|00:9|00:a|00:b|00:c|00:d|00:e|00:f|00:0|00:1|00:"
     "2|80:x",
     "B:0123456789abcdef012x", 0},
    {"6.1.1 valid: kosme", "81=cebae1bdb9cf83cebcceb5", "T=cebae1bdb9cf83cebcceb5", 0},
    {"6.1.2 valid: 1 byte lowest", "81=00", "T=00", 0},
    {"6.1.3 valid: 2 bytes lowest", "81=c280", "T=c280", 0},
    {"6.1.4 valid: 3 bytes lowest", "81=e0a080", "T=e0a080", 0},
    {"6.1.5 valid: 4 bytes lowest", "81=f0908080", "T=f0908080", 0},
    {"6.1.6 valid: 1 byte highest", "81=7f", "T=7f", 0},
    {"6.1.7 valid: 2 bytes highest", "81=dfbf", "T=dfbf", 0},
    {"6.1.8 valid: 3 bytes highest", "81=efbfbf", "T=efbfbf", 0},
    {"6.1.9 valid: 4 bytes highest", "81=f48fbfbf", "T=f48fbfbf", 0},
    {"6.1.10 valid: before the surrogates", "81=ed9fbf", "T=ed9fbf", 0},
    {"6.1.11 valid: after the surrogates", "81=ee8080", "T=ee8080", 0},
    {"6.1.12 valid: replacement", "81=efbfbd", "T=efbfbd", 0},
    {"6.1.13 valid: byte order mark", "81=efbbbf61", "T=efbbbf61", 0},
    {"6.1.14 valid: non-characters", "81=efbfbeefbfbff09fbfbe", "T=efbfbeefbfbff09fbfbe", 0},
    {"6.2.1 invalid: lone continuation", "81=80", "X1007", 0},
    {"6.2.2 invalid: two continuations", "81=bfbf", "X1007", 0},
    {"6.2.3 invalid: overlong slash in 2", "81=c0af", "X1007", 0},
    {"6.2.4 invalid: overlong nul", "81=c080", "X1007", 0},
    {"6.2.5 invalid: overlong in 2, highest", "81=c1bf", "X1007", 0},
    {"6.2.6 invalid: overlong in 3", "81=e080af", "X1007", 0},
    {"6.2.7 invalid: overlong in 3, highest", "81=e09fbf", "X1007", 0},
    {"6.2.8 invalid: overlong in 4", "81=f08080af", "X1007", 0},
    {"6.2.9 invalid: overlong in 4, highest", "81=f08fbfbf", "X1007", 0},
    {"6.2.10 invalid: surrogate d800", "81=eda080", "X1007", 0},
    {"6.2.11 invalid: surrogate dfff", "81=edbfbf", "X1007", 0},
    {"6.2.12 invalid: surrogate pair", "81=eda080edb080", "X1007", 0},
    {"6.2.13 invalid: above 10ffff", "81=f4908080", "X1007", 0},
    {"6.2.14 invalid: lead f5", "81=f5808080", "X1007", 0},
    {"6.2.15 invalid: 5 bytes", "81=f888808080", "X1007", 0},
    {"6.2.16 invalid: 6 bytes", "81=fc8480808080", "X1007", 0},
    {"6.2.17 invalid: fe", "81=fe", "X1007", 0},
    {"6.2.18 invalid: ff", "81=ff", "X1007", 0},
    {"6.2.19 invalid: lead followed by ascii", "81=c361", "X1007", 0},
    {"6.2.20 invalid: 3-byte cut by ascii", "81=e28261", "X1007", 0},
    {"6.2.21 invalid: bad after good", "81=cebae1bdb9cf83eda080656469746564", "X1007", 0},
    {"6.3.1 text ends inside a character: c3", "81=c3", "X1007", 0},
    {"6.3.2 text ends inside a character: e282", "81=e282", "X1007", 0},
    {"6.3.3 text ends inside a character: f09f98", "81=f09f98", "X1007", 0},
    {"6.4.1 refused before the frame is whole", "81L100;=cebaf4908080", "X1007", 0},
    {"6.4.2 at the second byte of a character", "81L100;=eda0", "X1007", 0},
    {"6.4.3 in the first fragment", "01=ce80ff", "X1007", 0},
    {"6.4.4 in a later fragment, not whole", "01=ceba|00L50;=c0", "X1007", 0},
    {"6.4.5 good so far", "01=cebaf48f", "", 0},
    {"6.5.1 character split between two fragments", "01=e2|80=82ac", "T=e282ac", 0},
    {"6.5.2 character split over four fragments", "01=f0|00=9f|00=98|80=80", "T=f09f9880", 0},
    {"6.5.3 split by an empty fragment", "01=ce|00:|80=ba", "T=ceba", 0},
    {"6.5.4 split with a ping between", "01=ce|89=ff|80=ba", "P=ff|T=ceba", 0},
    {"6.5.5 split by a fragment, then broken", "01=ce|80=c0", "X1007", 0},
    {"6.5.6 last fragment ends inside", "01=ce|80=bae2", "X1007", 0},
    {"6.5.7 state starts afresh in the next message", "81=ceba|81=ba", "T=ceba|X1007", 0},
    {"6.6.1 binary is not text", "82=fffefdc0", "B=fffefdc0", 0},
    {"6.6.2 binary in fragments is not text", "02=ff|80=c0", "B=ffc0", 0},
    {"7.1.1 text, then close", "81:a|88#1000", "T:a|C1000:", 0},
    {"7.1.2 nothing counts after a close", "88#1000|81:a|89:b", "C1000:", 0},
    {"7.1.3 not even nonsense", "88#1000|ff:b", "C1000:", 0},
    {"7.1.4 close twice", "88#1000|88#1001", "C1000:", 0},
    {"7.3.1 close without payload", "88:", "C1005:", 0},
    {"7.3.2 close of one byte", "88=03", "X1002", 0},
    {"7.3.3 close with a code", "88#1000", "C1000:", 0},
    {"7.3.4 close with a reason", "88#1000:bye", "C1000:bye", 0},
    {"7.3.5 reason of 123 bytes",
     "88#1000:*************************************************************************************"
     "**************************************",
     "C1000*123", 0},
    {"7.3.6 close of 126 bytes",
     "88#1000:*************************************************************************************"
     "***************************************",
     "X1002", 0},
    {"7.5.1 reason is not UTF-8", "88=03e8ceba80", "X1007", 0},
    {"7.5.2 reason ends inside a character", "88=03e8e282", "X1007", 0},
    {"7.5.3 reason in Greek", "88=03e8ceba", "C1000=ceba", 0},
    {"7.5.4 bad code and bad reason: the code comes first", "88=03ec80", "X1002", 0},
    {"7.7.1000 valid code", "88#1000:why", "C1000:why", 0},
    {"7.7.1001 valid code", "88#1001:why", "C1001:why", 0},
    {"7.7.1002 valid code", "88#1002:why", "C1002:why", 0},
    {"7.7.1003 valid code", "88#1003:why", "C1003:why", 0},
    {"7.7.1007 valid code", "88#1007:why", "C1007:why", 0},
    {"7.7.1008 valid code", "88#1008:why", "C1008:why", 0},
    {"7.7.1009 valid code", "88#1009:why", "C1009:why", 0},
    {"7.7.1010 valid code", "88#1010:why", "C1010:why", 0},
    {"7.7.1011 valid code", "88#1011:why", "C1011:why", 0},
    {"7.7.1012 valid code", "88#1012:why", "C1012:why", 0},
    {"7.7.1013 valid code", "88#1013:why", "C1013:why", 0},
    {"7.7.1014 valid code", "88#1014:why", "C1014:why", 0},
    {"7.7.3000 valid code", "88#3000:why", "C3000:why", 0},
    {"7.7.3999 valid code", "88#3999:why", "C3999:why", 0},
    {"7.7.4000 valid code", "88#4000:why", "C4000:why", 0},
    {"7.7.4999 valid code", "88#4999:why", "C4999:why", 0},
    {"7.9.0 invalid code", "88#0:why", "X1002", 0},
    {"7.9.1 invalid code", "88#1:why", "X1002", 0},
    {"7.9.999 invalid code", "88#999:why", "X1002", 0},
    {"7.9.1004 invalid code", "88#1004:why", "X1002", 0},
    {"7.9.1005 invalid code", "88#1005:why", "X1002", 0},
    {"7.9.1006 invalid code", "88#1006:why", "X1002", 0},
    {"7.9.1015 invalid code", "88#1015:why", "X1002", 0},
    {"7.9.1016 invalid code", "88#1016:why", "X1002", 0},
    {"7.9.1100 invalid code", "88#1100:why", "X1002", 0},
    {"7.9.2000 invalid code", "88#2000:why", "X1002", 0},
    {"7.9.2999 invalid code", "88#2999:why", "X1002", 0},
    {"7.9.5000 invalid code", "88#5000:why", "X1002", 0},
    {"7.9.9999 invalid code", "88#9999:why", "X1002", 0},
    {"7.9.65535 invalid code", "88#65535:why", "X1002", 0},
    {"9.1 exactly the limit", "82*1000", "B*1000", CASE_SMALL},
    {"9.2 one above it", "82*1001", "X1009", CASE_SMALL},
    {"9.3 refused by its head alone", "82L1001;:", "X1009", CASE_SMALL},
    {"9.4 a claim of 2^62 bytes", "82L4611686018427387904;:", "X1009", CASE_SMALL},
    {"9.5 exactly the limit in two fragments", "02*999|80*1", "B*1000", CASE_SMALL},
    {"9.6 one above it in two fragments", "02*999|80*2", "X1009", CASE_SMALL},
    {"9.7 one above it in many", "01*400|00*400|00*200|80*1", "X1009", CASE_SMALL},
    {"9.8 the limit is per message", "82*1000|82*1000|81*1000", "B*1000|B*1000|T*1000", CASE_SMALL},
    {"9.9 pings do not count", "02*1000|89*125|80:", "P*125|B*1000", CASE_SMALL},
    {"9.10 a megabyte", "82*1048576", "B*1048576", CASE_CODEC},
    {"9.11 one more", "82L1048577;:", "X1009", 0},
    {"9.12 bad text before the fragment that is too big", "01=ff|80*1000", "X1007", CASE_SMALL},
    {"12.1.1 RFC 7692: one block", "c1=f248cdc9c90700", "T:Hello", CASE_DEFLATE},
    {"12.1.2 RFC 7692: in two fragments", "41=f248cd|80=c9c90700", "T:Hello", CASE_DEFLATE},
    {"12.1.3 RFC 7692: block without compression", "c1=000500faff48656c6c6f00", "T:Hello",
     CASE_DEFLATE},
    {"12.1.4 RFC 7692: final block", "c1=f348cdc9c9070000", "T:Hello", CASE_DEFLATE},
    {"12.1.5 RFC 7692: two blocks", "c1=f24805000000ffffcac9c90700", "T:Hello", CASE_DEFLATE},
    {"12.1.6 RFC 7692: second message refers to the first", "c1=f248cdc9c90700|c1=f200110000",
     "T:Hello|T:Hello", CASE_DEFLATE | CASE_CONTEXT},
    {"12.1.7 the same where contexts are not kept", "c1=f248cdc9c90700|c1=f200110000",
     "T:Hello|X1007", CASE_DEFLATE},
    {"12.1.8 empty message", "c1=00", "T:", CASE_DEFLATE},
    {"12.1.9 empty message sent as nothing", "c1:|81:a", "T:|T:a", CASE_DEFLATE},
    {"12.1.10 context survives a final block", "c1=f348cdc9c9070000|c1=f200110000",
     "T:Hello|T:Hello", CASE_DEFLATE | CASE_CONTEXT},
    {"12.1.11 context survives a plain message", "c1=f248cdc9c90700|81:x|c1=f200110000",
     "T:Hello|T:x|T:Hello", CASE_DEFLATE | CASE_CONTEXT},
    {"12.2.1 16 bytes compressed", "c1z*16", "T*16", CASE_DEFLATE},
    {"12.3.1 16 bytes compressed, binary", "c2z*16", "B*16", CASE_DEFLATE},
    {"12.2.2 126 bytes compressed", "c1z*126", "T*126", CASE_DEFLATE},
    {"12.3.2 126 bytes compressed, binary", "c2z*126", "B*126", CASE_DEFLATE},
    {"12.2.3 1024 bytes compressed", "c1z*1024", "T*1024", CASE_DEFLATE},
    {"12.3.3 1024 bytes compressed, binary", "c2z*1024", "B*1024", CASE_DEFLATE},
    {"12.2.4 65535 bytes compressed", "c1z*65535", "T*65535", CASE_DEFLATE | CASE_CODEC},
    {"12.3.4 65535 bytes compressed, binary", "c2z*65535", "B*65535", CASE_DEFLATE | CASE_CODEC},
    {"12.2.5 65536 bytes compressed", "c1z*65536", "T*65536", CASE_DEFLATE | CASE_CODEC},
    {"12.3.5 65536 bytes compressed, binary", "c2z*65536", "B*65536", CASE_DEFLATE | CASE_CODEC},
    {"12.2.6 131072 bytes compressed", "c1z*131072", "T*131072", CASE_DEFLATE | CASE_CODEC},
    {"12.3.6 131072 bytes compressed, binary", "c2z*131072", "B*131072", CASE_DEFLATE | CASE_CODEC},
    {"12.4.1 plain message although agreed", "81:Hello|82:x", "T:Hello|B:x", CASE_DEFLATE},
    {"12.4.2 compressed and plain by turns", "c1z:one|81:two|c2z:three", "T:one|T:two|B:three",
     CASE_DEFLATE},
    {"12.4.3 ping between compressed fragments", "41=f248cd|89:p|80=c9c90700", "P:p|T:Hello",
     CASE_DEFLATE},
    {"12.4.4 empty first fragment", "41:|00=f248cd|80=c9c90700", "T:Hello", CASE_DEFLATE},
    {"12.4.5 many with context",
     "c1z:same text|c1z:same text|c1z:same text|c1z:same text|c1z:same text",
     "T:same text|T:same text|T:same text|T:same text|T:same text", CASE_DEFLATE | CASE_CONTEXT},
    {"12.5.1 compression bit on a continuation", "41=f248cd|c0=c9c90700", "X1002", CASE_DEFLATE},
    {"12.5.2 compression bit on a ping", "c9:x", "X1002", CASE_DEFLATE},
    {"12.5.3 compression bit on a close", "c8#1000", "X1002", CASE_DEFLATE},
    {"12.5.4 another reserved bit", "a1:x", "X1002", CASE_DEFLATE},
    {"12.5.5 compression not agreed", "c1=f248cdc9c90700", "X1002", 0},
    {"12.6.1 block type 3", "c1=ff", "X1007", CASE_DEFLATE},
    {"12.6.2 refused before the frame is whole", "c1L100;=ffff", "X1007", CASE_DEFLATE},
    {"12.6.3 distance before the beginning", "c1=f200110000", "X1007", CASE_DEFLATE},
    {"12.6.4 stored length that does not match", "c1=000500000048", "X1007", CASE_DEFLATE},
    {"12.6.5 cut inside a block", "c1=f248cd", "X1007", CASE_DEFLATE},
    {"12.6.6 cut inside a stored block", "c1=000500faff4865", "X1007", CASE_DEFLATE},
    {"12.6.7 a flush inside the message", "c1=f248cdc9c907000000ffff00", "T:Hello", CASE_DEFLATE},
    {"12.7.1 bad text inside", "c1z=ceba80", "X1007", CASE_DEFLATE},
    {"12.7.2 text ends inside a character", "c1z=e282", "X1007", CASE_DEFLATE},
    {"12.7.3 character split between fragments", "41=000300fcffe2|80=82ac00", "T=e282ac",
     CASE_DEFLATE},
    {"12.7.4 bad text before corrupt data", "41=000100feffff|80=ff", "X1007", CASE_DEFLATE},
    {"13.1 bomb", "c2z*1000000", "X1009", CASE_DEFLATE | CASE_SMALL},
    {"13.2 bomb of text", "c1z*1000000", "X1009", CASE_DEFLATE | CASE_SMALL},
    {"13.3 exactly the limit", "c2z*1000", "B*1000", CASE_DEFLATE | CASE_SMALL},
    {"13.4 one above it", "c2z*1001", "X1009", CASE_DEFLATE | CASE_SMALL},
    {"13.5 ten megabytes against one", "c2z*10485760", "X1009", CASE_DEFLATE | CASE_CODEC},
    {"13.6 compressed data longer than any message", "c2L3025;:", "X1009",
     CASE_DEFLATE | CASE_SMALL},
    {"13.7 compressed data as long as is allowed", "c2L3024;:", "", CASE_DEFLATE | CASE_SMALL},
    {"13.8 the limit holds after a good message", "c2z*1000|c2z*1000|c2z*2000",
     "B*1000|B*1000|X1009", CASE_DEFLATE | CASE_SMALL},
    {"13.9 the limit with context", "c2z*1000|c2z*1001", "B*1000|X1009",
     CASE_DEFLATE | CASE_CONTEXT | CASE_SMALL},
};
const size_t ws_case_count = ARRAY_LEN(ws_cases);

#define MAX_BYTES (32u << 20)

static unsigned hex_byte(const char *p)
{
    char two[3] = {p[0], p[1], 0};

    return (unsigned)strtoul(two, NULL, 16);
}

static const char *read_hex(const char *p, struct buf *out)
{
    for (; isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1]); p += 2)
        buf_add_char(out, (char)hex_byte(p));
    return p;
}

static const char *read_text(const char *p, struct buf *out)
{
    while (*p && *p != '|')
        buf_add_char(out, *p++);
    return p;
}

static const char *read_payload(const char *p, struct buf *out)
{
    char *end = (char *)p;

    if (*p == ':')
        return read_text(p + 1, out);
    if (*p == '=')
        return read_hex(p + 1, out);
    unsigned long n = strtoul(p + 1, &end, 10);
    if (*p == '*') {
        char *to = buf_reserve(out, n ? n : 1);
        CHECK(to != NULL);
        memset(to, '*', n);
        buf_commit(out, n);
        return end;
    }
    CHECK(*p == '#');
    buf_add_char(out, (char)(n >> 8));
    buf_add_char(out, (char)n);
    return *end == ':' ? read_text(end + 1, out) : end;
}

static void squeeze(z_stream *z, struct buf *payload)
{
    struct buf out;

    buf_init(&out, MAX_BYTES);
    z->next_in = (Bytef *)payload->p;
    z->avail_in = (uInt)payload->len;
    z->avail_out = (uInt)(payload->len + 1024);
    z->next_out = (Bytef *)buf_reserve(&out, z->avail_out);
    deflate(z, Z_SYNC_FLUSH);
    CHECK(z->avail_in == 0 && z->avail_out > 0);
    buf_commit(&out, payload->len + 1024 - z->avail_out - 4);
    buf_done(payload);
    *payload = out;
}

struct frame {
    uint8_t first;
    bool wrong_mask, compress, claims;
    char width; /* 'w', 'W' or 0 */
    uint64_t claim;
};

static const char *read_flags(const char *p, struct frame *f)
{
    for (;; p++) {
        if (*p == 'm')
            f->wrong_mask = true;
        else if (*p == 'z')
            f->compress = true;
        else if (*p == 'w' || *p == 'W')
            f->width = *p;
        else if (*p == 'L') {
            char *end;
            f->claims = true;
            f->claim = strtoull(p + 1, &end, 10);
            p = end; /* at the ';' */
        } else
            return p;
    }
}

static void put_frame(const struct frame *f, bool masked, const struct buf *payload,
                      struct buf *out)
{
    uint8_t key[4] = {(uint8_t)out->len, 0x5a, (uint8_t)(out->len >> 3), 0xc3};
    uint8_t head[WS_HEAD_MAX];
    uint64_t len = f->claims ? f->claim : payload->len;
    size_t n = ws_head_put(head, f->first, len, NULL);

    if (f->width) {
        size_t width = f->width == 'w' ? 2 : 8;
        head[1] = width == 2 ? 126 : 127;
        for (n = 2; n < 2 + width; n++)
            head[n] = (uint8_t)(len >> (8 * (width + 1 - n)));
    }
    if (masked) {
        head[1] |= 0x80;
        memcpy(head + n, key, 4);
        n += 4;
    }
    buf_add_mem(out, head, n);
    char *to = buf_reserve(out, payload->len ? payload->len : 1);
    if (masked)
        ws_mask_copy(to, payload->p, payload->len, key, 0);
    else if (payload->len)
        memcpy(to, payload->p, payload->len);
    buf_commit(out, payload->len);
}

void ws_case_bytes(const struct ws_case *c, enum ws_role role, struct buf *out)
{
    z_stream z = {0};

    CHECK(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    for (const char *p = c->in; *p; p += *p == '|') {
        if (*p == '~') {
            p = read_hex(p + 1, out);
            continue;
        }
        own_done(buf) payload;
        struct frame f = {.first = (uint8_t)hex_byte(p)};
        buf_init(&payload, MAX_BYTES);
        p = read_payload(read_flags(p + 2, &f), &payload);
        if (f.compress)
            squeeze(&z, &payload);
        if (!(c->flags & CASE_CONTEXT))
            deflateReset(&z);
        put_frame(&f, (role == WS_SERVER) != f.wrong_mask, &payload, out);
    }
    deflateEnd(&z);
}

static void print_data(struct buf *out, struct str data)
{
    size_t stars = 0, printable = 0;

    for (size_t i = 0; i < data.len; i++) {
        stars += data.p[i] == '*';
        printable += isprint((unsigned char)data.p[i]) != 0;
    }
    if (stars && stars == data.len) {
        buf_addf(out, "*%zu", stars);
    } else if (printable == data.len) {
        buf_add_char(out, ':');
        buf_add(out, data);
    } else {
        buf_add_char(out, '=');
        for (size_t i = 0; i < data.len; i++)
            buf_addf(out, "%02x", (unsigned char)data.p[i]);
    }
}

void ws_case_print(struct buf *out, const struct ws_event *ev)
{
    static const char letters[] = {
        [WS_EV_TEXT] = 'T', [WS_EV_BINARY] = 'B', [WS_EV_PING] = 'P',
        [WS_EV_PONG] = 'O', [WS_EV_CLOSE] = 'C',  [WS_EV_FAIL] = 'X',
    };

    if (out->len)
        buf_add_char(out, '|');
    buf_add_char(out, letters[ev->kind]);
    if (ev->kind == WS_EV_CLOSE || ev->kind == WS_EV_FAIL)
        buf_addf(out, "%d", ev->code);
    if (ev->kind != WS_EV_FAIL)
        print_data(out, ev->data);
}

struct ws_deflate_terms ws_case_terms(const struct ws_case *c)
{
    return (struct ws_deflate_terms){
        .on = c->flags & CASE_DEFLATE,
        .send_bits = WS_DEFLATE_BITS,
        .receive_bits = 15,
        .receive_forgets = !(c->flags & CASE_CONTEXT),
    };
}

size_t ws_case_limit(const struct ws_case *c)
{
    return c->flags & CASE_SMALL ? CASE_SMALL_BYTES : CASE_BYTES;
}
