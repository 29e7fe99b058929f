# SPDX-License-Identifier: Apache-2.0
"""Small documents of every kind the editor shows, into the directory given; for aes_document_test.c."""
import os
import sys
import wave
import zipfile

os.chdir(sys.argv[1])
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def pack(name, **parts):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        for path, text in parts["parts"].items():
            z.writestr(path, text)


def rels(*pairs):
    rows = "".join(f'<Relationship Id="{i}" Target="{t}"/>' for i, t in pairs)
    return f'<Relationships xmlns="{RELS}">{rows}</Relationships>'


def p(text, style="", run=""):
    style = f"<w:pPr>{style}</w:pPr>" if style else ""
    run = f"<w:rPr>{run}</w:rPr>" if run else ""
    return f"<w:p>{style}<w:r>{run}<w:t>{text}</w:t></w:r></w:p>"


def row(*cells):
    return "<w:tr>" + "".join(f"<w:tc>{p(c)}</w:tc>" for c in cells) + "</w:tr>"


ITEM = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
body = (
    p("Report", '<w:pStyle w:val="Title"/>')
    + p("Part two", '<w:pStyle w:val="Heading2"/>')
    + p("Plain &amp; simple \u00e4")
    + p("strong", run="<w:b/>")
    + p("one", ITEM)
    + p("two", ITEM)
    + "<w:tbl>" + row("a", "b|c") + row("1", "2") + "</w:tbl>"
)
pack("a.docx", parts={"word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'})

sheet = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>third</t></is></c></row>'
    '<row r="2"><c r="A2"><v>1.5</v></c><c r="B2" t="b"><v>1</v></c></row>'
)
pack(
    "a.xlsx",
    parts={
        "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets><sheet name="Numbers" sheetId="1" r:id="x9"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": rels(("x9", "/xl/worksheets/sheet7.xml")),
        "xl/worksheets/sheet7.xml": f'<worksheet xmlns="{S}"><sheetData>{sheet}</sheetData></worksheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{S}"><si><r><t>fi</t></r><r><t>rst</t></r></si></sst>',
    },
)


def shape(text, kind=""):
    ph = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    return f"<p:sp>{ph}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def slide(*shapes):
    return f'<p:sld xmlns:p="{P}" xmlns:a="{A}">{"".join(shapes)}</p:sld>'


pack(
    "a.pptx",
    parts={
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{P}" xmlns:r="{R}"><p:sldIdLst><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": rels(("r1", "slides/slide1.xml"), ("r2", "slides/slide2.xml")),
        "ppt/slides/slide1.xml": slide(shape("Last", "title"), shape("3", "sldNum")),
        "ppt/slides/slide2.xml": slide(shape("First", "ctrTitle"), shape("words")),
        "ppt/slides/_rels/slide2.xml.rels": rels(("n", "../notesSlides/notesSlide1.xml")),
        "ppt/notesSlides/notesSlide1.xml": slide(shape("say this")),
    },
)

content = b"BT /F1 24 Tf 72 700 Td (Hello from PDF) Tj ET"
objects = [
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
    b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
]
pdf, places = b"%PDF-1.4\n", []
for n, text in enumerate(objects, 1):
    places.append(len(pdf))
    pdf += b"%d 0 obj\n%s\nendobj\n" % (n, text)
at = len(pdf)
pdf += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % x for x in places)
pdf += b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % at
with open("a.pdf", "wb") as f:
    f.write(pdf)

with wave.open("a.wav", "wb") as w:
    w.setnchannels(2)
    w.setsampwidth(2)
    w.setframerate(8000)
    w.writeframes(bytes(4 * 4000))

pack("long.docx", parts={"word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{p("x" * 20000)}</w:body></w:document>'})
with open("broken.xlsx", "wb") as f:
    f.write(b"PK\x03\x04 not at all")
