# SPDX-License-Identifier: Apache-2.0
"""Functions that every cell finds: a pager, searches, document readers and a file editor. They
print (the editor returns) exactly what models know from OpenHands' agent skills."""
import json
import os
import pathlib
import re
import uuid

__all__ = ["open_file", "goto_line", "scroll_down", "scroll_up", "search_dir", "search_file"]
__all__ += ["find_file", "parse_pdf", "parse_docx", "parse_latex", "parse_pptx", "file_editor"]

_WINDOW = 100
_file = None  # what open_file opened
_line = 1


# --- the pager ---


def _error(text):
    print(f"ERROR: {text}")


def _lines(path):
    with open(path, errors="replace") as f:
        text = f.read()
    return text.splitlines(True) or [""]


def _count(path):
    with open(path, errors="replace") as f:
        return max(1, sum(1 for _ in f))


def _is_open():
    if _file and os.path.isfile(_file):
        return True
    _error("No file open. Use the open_file function first.")
    return False


def _window(target, size, from_target):
    """The text around a line, or from it on, and the lines it is made of."""
    global _line
    lines = _lines(_file)
    total = len(lines)
    _line = max(1, min(target, total))
    half = max(1, size // 2)
    first = _line if from_target else max(1, _line - half)
    last = min(total, _line + (size if from_target else half))
    if first == 1:
        last = min(total, size)
    if last == total:
        first = max(1, last - size + 1)
    above = f"({first - 1} more lines above)" if first > 1 else "(this is the beginning of the file)"
    below = f"({total - last} more lines below)" if last < total else "(this is the end of the file)"
    shown = []
    for number in range(first, last + 1):
        text = f"{number}|{lines[number - 1]}"
        shown.append(text if text.endswith("\n") else text + "\n")
    return (above + "\n" + "".join(shown) + below).rstrip(), last < total


def _page(target, size=_WINDOW, from_target=False, advise=False):
    text, more = _window(target, size, from_target)
    head = f"[File: {os.path.abspath(_file)} ({_count(_file)} lines total)]\n"
    tail = "\n[Use `scroll_down` to view the next 100 lines of the file!]" if advise and more else ""
    print(head + text + tail)


def open_file(path: str, line_number: int = 1, context_lines: int = 100) -> None:
    """Opens a file and shows up to 100 lines around a line of it."""
    global _file
    if not os.path.isfile(path):
        return _error(f"File {path} not found.")
    _file = os.path.abspath(path)
    total = _count(_file)
    if not isinstance(line_number, int) or not 1 <= line_number <= total:
        return _error(f"Line number must be between 1 and {total}")
    if context_lines is None or context_lines < 1:
        context_lines = _WINDOW
    _page(line_number, min(context_lines, 100), advise=True)


def goto_line(line_number: int) -> None:
    """Shows the open file around a line."""
    if not _is_open():
        return
    total = _count(_file)
    if not isinstance(line_number, int) or not 1 <= line_number <= total:
        return _error(f"Line number must be between 1 and {total}.")
    _page(line_number)


def scroll_down() -> None:
    """Shows the next 100 lines of the open file."""
    if _is_open():
        _page(_line + _WINDOW, from_target=True)


def scroll_up() -> None:
    """Shows the 100 lines before."""
    if _is_open():
        _page(_line - _WINDOW, from_target=True)


# --- searches ---


def _hits(term, path):
    try:
        with open(path, errors="ignore") as f:
            return [(n, line.strip()) for n, line in enumerate(f, 1) if term in line]
    except OSError:
        return []  # a dangling link, a socket, somebody else's file


def search_dir(search_term: str, dir_path: str = "./") -> None:
    """Searches a term in all files of a directory and of those below it."""
    if not os.path.isdir(dir_path):
        return _error(f"Directory {dir_path} not found")
    found = []
    for root, _, names in os.walk(dir_path):
        for name in names:
            path = os.path.join(root, name)
            if not name.startswith(".") and os.path.isfile(path):
                found += [(path, n, line) for n, line in _hits(search_term, path)]
    if not found:
        print(f'No matches found for "{search_term}" in {dir_path}')
        return
    files = len({path for path, _, _ in found})
    if files > 100:
        print(
            f'More than {files} files matched for "{search_term}" in {dir_path}. '
            "Please narrow your search."
        )
        return
    print(f'[Found {len(found)} matches for "{search_term}" in {dir_path}]')
    for path, n, line in found:
        print(f"{path} (Line {n}): {line}")
    print(f'[End of matches for "{search_term}" in {dir_path}]')


def search_file(search_term: str, file_path: str = None) -> None:
    """Searches a term in a file, or in the one that is open."""
    path = file_path if file_path is not None else _file
    if path is None:
        return _error("No file specified or open. Use the open_file function first.")
    if not os.path.isfile(path):
        return _error(f"File {path} not found.")
    found = _hits(search_term, path)
    if not found:
        print(f'[No matches found for "{search_term}" in {path}]')
        return
    print(f'[Found {len(found)} matches for "{search_term}" in {path}]')
    for n, line in found:
        print(f"Line {n}: {line}")
    print(f'[End of matches for "{search_term}" in {path}]')


def find_file(file_name: str, dir_path: str = "./") -> None:
    """Finds files by a part of their name."""
    if not os.path.isdir(dir_path):
        return _error(f"Directory {dir_path} not found")
    found = []
    for root, _, names in os.walk(dir_path):
        found += [os.path.join(root, name) for name in names if file_name in name]
    if not found:
        print(f'[No matches found for "{file_name}" in {dir_path}]')
        return
    print(f'[Found {len(found)} matches for "{file_name}" in {dir_path}]')
    print("\n".join(found))
    print(f'[End of matches for "{file_name}" in {dir_path}]')


# --- documents: by the standard library where it can, else by a library that may be missing ---


def _need(module, package):
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise RuntimeError(
            f"this needs the Python package '{package}': run `%pip install {package}` first"
        ) from None


def _tag(element):
    return element.tag.rsplit("}", 1)[-1]


def _attr(element, name):
    """By its name alone: the space it is in is always the same, and long."""
    return next((v for k, v in element.attrib.items() if k.rsplit("}", 1)[-1] == name), None)


def _all(element, *tags):
    return [e for e in element.iter() if _tag(e) in tags] if element is not None else []


class _Parts:
    """The XML inside an Office document, which is a zip archive."""

    def __init__(self, path):
        import zipfile

        self.zip = zipfile.ZipFile(path)

    def xml(self, name):
        import xml.etree.ElementTree

        if name not in self.zip.namelist():
            return None
        if self.zip.getinfo(name).file_size > 64 << 20:
            raise ValueError(f"'{name}' is over 64 MB unpacked")
        return xml.etree.ElementTree.fromstring(self.zip.read(name))

    def related(self, name):
        """What the ids in a part stand for."""
        base, file = name.rsplit("/", 1)
        found = {}
        for e in _all(self.xml(f"{base}/_rels/{file}.rels"), "Relationship"):
            path = os.path.normpath(os.path.join("/" + base, e.get("Target", "")))
            found[e.get("Id")] = path.lstrip("/")
        return found


def _table(rows):
    width = max(map(len, rows), default=0)
    if not width:
        return ""
    rows = [[c.replace("|", "\\|").replace("\n", " ") for c in r] + [""] * (width - len(r)) for r in rows]
    lines = ["| " + " | ".join(r) + " |" for r in rows]
    return "\n".join([lines[0], "|" + " --- |" * width] + lines[1:])


def _text(paragraph):
    out = ""
    for e in paragraph.iter():
        out += (e.text or "") if _tag(e) == "t" else {"tab": "\t", "br": "\n"}.get(_tag(e), "")
    return out


def _styled(paragraph):
    """Its runs, the bold and slanted ones marked."""
    out = []
    for run in _all(paragraph, "r"):
        on = {_tag(e) for e in _all(run, "b", "i") if _attr(e, "val") not in ("0", "false", "none")}
        mark = "**" * ("b" in on) + "*" * ("i" in on)
        if out and out[-1][0] == mark:
            out[-1][1] += _text(run)
        else:
            out.append([mark, _text(run)])
    return "".join(f"{m}{t}{m[::-1]}" if t.strip() else t for m, t in out)


def _docx_block(e):
    if _tag(e) == "tbl":
        return _table([[_text(c).strip() for c in _all(r, "tc")] for r in _all(e, "tr")])
    style = next((_attr(s, "val") or "" for s in _all(e, "pStyle")), "")
    level = 1 if style == "Title" else int(re.sub("\\D", "", style) or 1) if style.lower().startswith("heading") else 0
    if level:
        return "#" * min(level, 6) + " " + _text(e)
    depth = next((int(_attr(i, "val") or 0) for i in _all(e, "ilvl")), 0)
    return ("  " * depth + "* " if _all(e, "numPr") else "") + _styled(e)


def _docx_blocks(path):
    body = next(e for e in _Parts(path).xml("word/document.xml") if _tag(e) == "body")
    return [e for e in body if _tag(e) in ("p", "tbl")]


def _docx(path):
    blocks = [_docx_block(e) for e in _docx_blocks(path)]
    joined = "\n\n".join(b for b in blocks if b.strip())
    return re.sub(r"(?m)^( *\* .*)\n\n(?= *\* )", r"\1\n", joined)


def _cell(cell, strings):
    value = next((v.text or "" for v in _all(cell, "v")), None)
    kind = cell.get("t")
    if kind == "s" and value:
        return strings[int(value)]
    if value is None or kind == "inlineStr":
        return "".join(t.text or "" for t in _all(cell, "t"))
    return {"0": "FALSE", "1": "TRUE"}.get(value, value) if kind == "b" else value


def _column(place):
    n = 0
    for c in re.match("[A-Z]*", place or "").group():
        n = n * 26 + ord(c) - 64
    return n


def _sheet(sheet, strings):
    rows = []
    for row in _all(sheet, "row"):
        cells = []
        for cell in _all(row, "c"):
            cells += [""] * min(_column(cell.get("r")) - 1 - len(cells), 16384)
            cells.append(_cell(cell, strings))
        rows.append(cells)
    return _table(rows)


def _xlsx(path):
    parts = _Parts(path)
    shared = _all(parts.xml("xl/sharedStrings.xml"), "si")
    strings = ["".join(t.text or "" for t in _all(si, "t")) for si in shared]
    files = parts.related("xl/workbook.xml")
    out = []
    for s in _all(parts.xml("xl/workbook.xml"), "sheet"):
        out.append(f"## {s.get('name')}\n" + _sheet(parts.xml(files.get(_attr(s, "id"))), strings))
    return "\n\n".join(out)


def _shapes(slide):
    """(is it the title, text) of each shape that has text."""
    for shape in _all(slide, "sp", "tbl"):
        if _tag(shape) == "tbl":
            yield False, _table([[_text(c).strip() for c in _all(r, "tc")] for r in _all(shape, "tr")])
            continue
        kind = next((p.get("type") for p in _all(shape, "ph")), None)
        lines = [_text(p) for body in _all(shape, "txBody") for p in _all(body, "p")]
        if lines and kind not in ("sldNum", "dt", "ftr"):
            yield kind in ("title", "ctrTitle"), "\n".join(lines)


def _slides(path):
    """(shapes, shapes of the notes) of each slide, in their order."""
    parts = _Parts(path)
    files = parts.related("ppt/presentation.xml")
    for s in _all(parts.xml("ppt/presentation.xml"), "sldId"):
        file = files.get(next((v for k, v in s.attrib.items() if k.endswith("}id")), None), "")
        notes = [n for n in parts.related(file).values() if "notesSlide" in n] if file else []
        yield list(_shapes(parts.xml(file))), [x for n in notes for x in _shapes(parts.xml(n))]


def _pptx(path):
    out = []
    for n, (shapes, notes) in enumerate(_slides(path), 1):
        out.append(f"<!-- Slide number: {n} -->")
        out += [("# " if title else "") + text for title, text in shapes if text.strip()]
        said = "\n".join(text for _, text in notes if text.strip())
        out += ["### Notes:\n" + said] if said else []
    return "\n".join(out)


def _pdf_pages(path):
    import importlib
    import subprocess

    for name in ("pypdf", "PyPDF2"):
        try:
            reader = importlib.import_module(name).PdfReader(path)
        except ImportError:
            continue
        return [page.extract_text() for page in reader.pages]
    try:
        run = subprocess.run(["pdftotext", "-layout", "--", path, "-"], capture_output=True)
    except FileNotFoundError:
        _need("pypdf", "pypdf")
    if run.returncode:
        raise RuntimeError(run.stderr.decode(errors="replace").strip())
    return run.stdout.decode(errors="replace").split("\f")


def _pdf(path):
    return "\n\n".join(page.strip() for page in _pdf_pages(path))


def _audio(path):
    if path.lower().endswith(".wav"):
        import wave

        with wave.open(path) as w:
            facts = [w.getnchannels(), w.getframerate(), w.getnframes() / w.getframerate()]
    else:
        info = _need("mutagen", "mutagen").File(path).info
        facts = [info.channels, info.sample_rate, info.length]
    head = "* Channels: {}\n* Sample rate: {} Hz\n* Length: {:.2f} s\n".format(*facts)
    return head + "\nNo transcript: that needs a model outside the sandbox, which is not connected."


_READERS = {".docx": _docx, ".xlsx": _xlsx, ".pptx": _pptx, ".pdf": _pdf}


def _markdown(path):
    """A document as the editor shows it."""
    return _READERS.get(os.path.splitext(path)[1].lower(), _audio)(path).strip()


def _print_markdown():
    """The whole of a program that is given one document."""
    import resource
    import sys

    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    try:
        text, code = _markdown(sys.argv[1]), 0
    except Exception as e:
        text, code = f"{type(e).__name__}: {e}" if str(e) else type(e).__name__, 1
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.flush()
    os._exit(code)


def parse_pdf(file_path: str) -> None:
    """Prints the text of a PDF; needs the package pypdf (or PyPDF2, or pdftotext)."""
    print(f"[Reading PDF file from {file_path}]")
    pages = enumerate(_pdf_pages(file_path), 1)
    print("".join(f"@@ Page {n} @@\n{page}\n\n" for n, page in pages).strip())


def parse_docx(file_path: str) -> None:
    """Prints the paragraphs of a Word document."""
    print(f"[Reading DOCX file from {file_path}]")
    paragraphs = [e for e in _docx_blocks(file_path) if _tag(e) == "p"]
    print("".join(f"@@ Page {n} @@\n{_text(p)}\n\n" for n, p in enumerate(paragraphs, 1)))


def parse_latex(file_path: str) -> None:
    """Prints a LaTeX file as plain text; needs the package pylatexenc."""
    print(f"[Reading LaTex file from {file_path}]")
    with open(file_path) as f:
        source = f.read()
    print(_need("pylatexenc.latex2text", "pylatexenc").LatexNodes2Text().latex_to_text(source).strip())


def parse_pptx(file_path: str) -> None:
    """Prints the text of the slides of a PowerPoint file."""
    print(f"[Reading PowerPoint file from {file_path}]")
    try:
        text = []
        for n, (shapes, _) in enumerate(_slides(file_path), 1):
            text += [f"@@ Slide {n} @@"] + [shape for _, shape in shapes]
        print("\n".join(text))
    except Exception as e:
        print(f"Error reading PowerPoint file: {e}")


def _no_model(what):
    def refuse(file_path: str, *args, **kwargs) -> None:
        print(f"ERROR: {what} files need a model outside the sandbox, which is not connected.")

    return refuse


if os.environ.get("OPENAI_API_KEY") or os.environ.get("SANDBOX_ENV_OPENAI_API_KEY"):
    parse_audio, parse_image, parse_video = map(_no_model, ("Audio", "Image", "Video"))
    __all__ += ["parse_audio", "parse_image", "parse_video"]


# --- the editor ---

_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
_DOCUMENTS = (".docx", ".xlsx", ".pptx", ".pdf", ".mp3", ".wav", ".m4a", ".flac")
_SHOW_MAX = 16000
_SIZE_MAX = 10 << 20
_CLIPPED = "<response clipped><NOTE>Due to the max output limit, only part of this "
_CLIPPED_FILE = _CLIPPED + (
    "file has been shown to you. You should retry this tool after you have searched inside the "
    "file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>"
)
_CLIPPED_DIR = _CLIPPED + (
    "directory has been shown to you. You should use `ls -la` instead to view large directories "
    "incrementally.</NOTE>"
)
_CLIPPED_DOCUMENT = _CLIPPED + (
    "file has been shown to you. Please use Python libraries to view the entire file or search for "
    "specific content within the file.</NOTE>"
)
_history = {}  # path -> up to ten texts


class _Refused(Exception):
    pass


def _invalid(name, value, why):
    return _Refused(f"Invalid `{name}` parameter: {value}. {why}")


def _missing(name, command):
    return _Refused(f"Parameter `{name}` is required for command: {command}.")


def _exists(path):
    try:
        os.stat(path)
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as e:
        raise _Refused(f"Ran into {e} while trying to read {path}") from None


def _check_path(command, path):
    if not path.startswith("/"):
        raise _invalid(
            "path", path, "The path should be an absolute path, starting with `/`."
        )
    there = _exists(path)
    if command == "create":
        if there:
            why = f"File already exists at: {path}. Cannot overwrite files using command `create`."
            raise _invalid("path", path, why)
        return
    if not there:
        raise _invalid("path", path, f"The path {path} does not exist. Please provide a valid path.")
    if command == "view":
        return
    suffix = os.path.splitext(path)[1].lower()
    if os.path.isdir(path):
        why = f"The path {path} is a directory and only the `view` command can be used on directories."
        raise _invalid("path", path, why)
    if suffix in _DOCUMENTS:
        why = f"The path {path} points to a binary file ({suffix}) and only the `view` command can be used on supported binary files."
        raise _invalid("path", path, why)


def _read(path):
    """The text with \\n newlines, the encoding, and the newline to write back."""
    try:
        size = os.path.getsize(path)
        if size > _SIZE_MAX:
            why = f"File is too large ({size / 1024 / 1024:.1f}MB). Maximum allowed size is 10MB."
            raise _Refused(f"File validation failed for {path}: {why}")
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        raise _Refused(f"Ran into {e} while trying to read {path}") from None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif b"\0" in data:
        why = "File appears to be binary and this file type cannot be read or edited by this tool."
        raise _Refused(f"File validation failed for {path}: {why}")
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"  # keeps every byte
        text = data.decode(encoding)
    newline = "\r\n" if "\r\n" in text else "\n"
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding, newline


def _write(path, text, encoding="utf-8", newline="\n"):
    try:
        with open(path, "w", encoding=encoding, newline=newline) as f:
            f.write(text)
    except (OSError, UnicodeError) as e:
        raise _Refused(f"Ran into {e} while trying to write to {path}") from None


def _remember(path, text):
    _history[path] = (_history.get(path, []) + [text])[-10:]


def _numbered(text, what, first=1):
    if len(text) > _SHOW_MAX:
        text = text[:_SHOW_MAX] + _CLIPPED_FILE
    lines = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), first))
    return f"Here's the result of running `cat -n` on {what}:\n{lines}\n"


def _split(text):
    """Lines as a file has them: at \\n alone."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _result(path, output, prev_exist=True, old=None, new=None):
    return {
        "output": output,
        "error": None,
        "path": path,
        "prev_exist": prev_exist,
        "old_content": old,
        "new_content": new,
    }


def _listing(path):
    base = path.rstrip("/") or "/"
    try:
        top = sorted(os.listdir(base))
    except OSError as e:
        raise _Refused(f"Ran into {e} while trying to read {path}") from None
    shown, hidden = [base], 0
    for name in top:
        full = os.path.join(base, name)
        if name.startswith("."):
            hidden += 1
            continue
        shown.append(full)
        try:
            below = os.listdir(full) if os.path.isdir(full) else []
        except OSError:
            below = []
        shown += [os.path.join(full, n) for n in below if not n.startswith(".")]
    text = "\n".join(p + "/" if os.path.isdir(p) and p != "/" else p for p in sorted(shown))
    if len(text) > _SHOW_MAX:
        text = text[:_SHOW_MAX] + _CLIPPED_DIR
    out = f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n"
    out += text
    if hidden:
        out += f"\n\n{hidden} hidden files/directories in this directory are excluded. "
        out += f"You can use 'ls -la {path}' to see them."
    return out


def _view(path, span):
    if os.path.isdir(path):
        if span:
            why = "The `view_range` parameter is not allowed when `path` points to a directory."
            raise _invalid("view_range", span, why)
        return {**_result(path, _listing(path)), "error": ""}  # as the original has it, not null
    if os.path.splitext(path)[1].lower() in _DOCUMENTS:
        try:
            text = _markdown(path)
        except Exception as e:
            why = f"Error in converting file to Markdown: {e}. Please use Python code to read {path}"
            raise _Refused(why) from None
        if len(text) > _SHOW_MAX:
            text = text[:_SHOW_MAX] + _CLIPPED_DOCUMENT
        head = f"Here's the content of the file {path} displayed in Markdown format:\n"
        return _result(path, head + text + "\n")
    text = _read(path)[0]
    if not span:
        return _result(path, _numbered(text, path))
    total = len(_split(text))
    if len(span) != 2 or not all(isinstance(i, int) for i in span):
        raise _invalid("view_range", span, "It should be a list of two integers.")
    first, last = span
    if not 1 <= first <= total:
        why = f"Its first element `{first}` should be within the range of lines of the file: {[1, total]}."
        raise _invalid("view_range", span, why)
    note = ""
    if last > total:
        note = f"NOTE: We only show up to {total} since there're only {total} lines in this file.\n"
    if last == -1 or last > total:
        last = total
    if last < first:
        why = f"Its second element `{last}` should be greater than or equal to the first element `{first}`."
        raise _invalid("view_range", span, why)
    return _result(path, note + _numbered("\n".join(_split(text)[first - 1 : last]), path, first))


def _snippet(text, first, last):
    lines = text.split("\n")
    keep = lines[first - 1 : last]
    return "\n".join(keep) + ("\n" if last < len(lines) else "")


def _replace(path, old, new):
    text, encoding, newline = _read(path)
    places = [m.start() for m in re.finditer(re.escape(old), text)]
    if not places:
        old, new = old.strip(), new.strip()
        places = [m.start() for m in re.finditer(re.escape(old), text)]
    if not places:
        why = f"old_str `{old}` did not appear verbatim in {path}."
        raise _Refused(f"No replacement was performed, {why}")
    lines = sorted({text.count("\n", 0, at) + 1 for at in places})
    if len(places) > 1:
        why = f"Multiple occurrences of old_str `{old}` in lines {lines}. Please ensure it is unique."
        raise _Refused(f"No replacement was performed. {why}")
    at = places[0]
    changed = text[:at] + new + text[at + len(old) :]
    _write(path, changed, encoding, newline)
    _remember(path, text)
    first = max(1, lines[0] - 3)
    shown = _snippet(changed, first, lines[0] + 4 + new.count("\n"))
    out = f"The file {path} has been edited. " + _numbered(shown, f"a snippet of {path}", first)
    out += "Review the changes and make sure they are as expected. Edit the file again if necessary."
    return _result(path, out, True, text, changed)


def _insert(path, after, new):
    text, encoding, newline = _read(path)
    lines = _split(text)
    if not isinstance(after, int) or not 0 <= after <= len(lines):
        why = f"It should be within the range of allowed values: {[0, len(lines)]}"
        raise _invalid("insert_line", after, why)
    added = new.split("\n")
    lines[after:after] = added
    end = "\n" if text.endswith("\n") or after == len(lines) - len(added) else ""
    changed = "\n".join(lines) + end
    _write(path, changed, encoding, newline)
    _remember(path, text)
    first = max(1, after - 3)
    shown = _snippet(changed, first, min(len(lines), after + 4 + len(added)))
    out = f"The file {path} has been edited. "
    out += _numbered(shown, "a snippet of the edited file", first)
    out += "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary."
    return _result(path, out, True, text, changed)


def _undo(path):
    if not _history.get(path):
        raise _Refused(f"No edit history found for {path}.")
    text, encoding, newline = _read(path)
    old = _history[path].pop()
    _write(path, old, encoding, newline)
    out = f"Last edit to {path} undone successfully. " + _numbered(old, path)
    return _result(path, out, True, text, old)


def _edit(command, path, file_text, view_range, old_str, new_str, insert_line):
    _check_path(command, path)
    if command == "view":
        return _view(path, view_range)
    if command == "create":
        if file_text is None:
            raise _missing("file_text", command)
        _write(path, file_text)
        _remember(path, file_text)
        return _result(path, f"File created successfully at: {path}", False, None, file_text)
    if command == "str_replace":
        if old_str is None:
            raise _missing("old_str", command)
        if new_str == old_str:
            why = "No replacement was performed. `new_str` and `old_str` must be different."
            raise _invalid("new_str", new_str, why)
        return _replace(path, old_str, new_str or "")
    if command == "insert":
        for name, value in (("insert_line", insert_line), ("new_str", new_str)):
            if value is None:
                raise _missing(name, command)
        return _insert(path, insert_line, new_str)
    if command == "undo_edit":
        return _undo(path)
    allowed = ", ".join(_COMMANDS)
    raise _Refused(
        f"Unrecognized command {command}. The allowed commands for the oh_editor tool are: {allowed}"
    )


def file_editor(
    command: str,
    path: str,
    file_text: str = None,
    view_range: list = None,
    old_str: str = None,
    new_str: str = None,
    insert_line: int = None,
    enable_linting: bool = False,
) -> str:
    """Views, creates and edits text files; the result is JSON between two marks."""
    try:
        path = str(pathlib.PurePosixPath(path))
        result = _edit(command, path, file_text, view_range, old_str, new_str, insert_line)
        formatted = result["output"]
    except _Refused as e:
        result = {"output": None, "error": str(e)}
        formatted = f"ERROR:\n{e}"
    mark = f"oh_aci_output_{uuid.uuid4().hex}"
    fields = ",".join(f'"{name}": {json.dumps(value)}' for name, value in result.items())
    tail = f', "formatted_output_and_error": {json.dumps(formatted)}'
    return f"<{mark}>\n{{{fields}{tail}}}\n</{mark}>"
