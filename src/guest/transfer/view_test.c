// SPDX-License-Identifier: Apache-2.0
/* view_test.c — the viewer's pages: every row, nothing unescaped, nothing from elsewhere. */
#include "test/transfer_kit.h"

static void check_page(struct kit *k, const char *path, int status, const char *body)
{
    struct web_answer a = kit_get(k, "/view", path);

    CHECK_INT(a.status, status);
    CHECK_HAS(a.head, "content-type: text/html; charset=utf-8\r\n");
    CHECK_STR(a.body, body);
}

TEST(refusals_of_the_viewer_are_pages_with_the_path_escaped)
{
    struct kit k;
    char want[900];

    kit_sh("mkdir d.png; printf x >'a&\"<b>.txt'; printf x >none");
    kit_open_web(&k, false);
    check_page(&k, "<x>.png", 400, "<h1>Error: Path must be absolute</h1><p>&lt;x&gt;.png</p>");
    check_page(&k, "/no/'<i>'.png", 404,
               "<h1>Error: File not found</h1><p>/no/&#x27;&lt;i&gt;&#x27;.png</p>");
    snprintf(want, sizeof want, "<h1>Error: Path is a directory</h1><p>%s/d.png</p>", test_dir());
    check_page(&k, kit_path("d.png"), 400, want);
    snprintf(want, sizeof want,
             "<h1>Error viewing file</h1><p>%s/a&amp;&quot;&lt;b&gt;.txt</p><p>Unsupported file "
             "extension: .txt. Supported extensions are: .pdf, .png, .jpg, .jpeg, .gif</p>",
             test_dir());
    check_page(&k, kit_path("a&\"<b>.txt"), 500, want);
    CHECK_HAS(kit_get(&k, "/view", kit_path("none")).body, "Unsupported file extension: . Supp");
    CHECK_INT(kit_get(&k, "/view", NULL).status, 422);
    CHECK_STR(kit_get(&k, "/", NULL).body, "{\"status\":\"File viewer server is running\"}");
    kit_close_web(&k);
}

TEST(an_image_is_embedded_whole)
{
    struct kit k;

    kit_sh("head -c 500001 /dev/urandom >'p \"<.PNG'");
    kit_open_web(&k, false);
    struct web_answer a = kit_get(&k, "/view", kit_path("p \"<.PNG"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.body, "<title>File Viewer - p &quot;&lt;.PNG</title>");
    CHECK_HAS(a.body, "<img src=\"data:image/png;base64,");
    CHECK_HAS(a.body, "\" alt=\"p &quot;&lt;.PNG\">");
    own_fd fd = kit_open("page", O_WRONLY | O_CREAT);
    CHECK_OK(fd_write_all(fd, a.body));
    kit_python("import re, base64\nd = re.search(r'base64,([^\"]*)\"', open('page').read())\n"
               "assert base64.b64decode(d[1]) == open('p \"<.PNG', 'rb').read()");
    kit_close_web(&k);
}

TEST(a_pdf_comes_with_the_script_that_draws_it)
{
    struct kit k;

    kit_sh("printf '%%PDF-1.4 tiny' >a.pdf");
    kit_open_web(&k, false);
    struct web_answer a = kit_get(&k, "/view", kit_path("a.pdf"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.body, "<title>File Viewer - a.pdf</title>");
    CHECK_HAS(a.body, "const PDF_BASE64 = \"JVBERi0xLjQgdGlueQ==\";\n");
    CHECK_HAS(a.body, "'canvas'");
    CHECK(str_find(a.body, STR("http:")) < 0 && str_find(a.body, STR("https:")) < 0);
    CHECK(str_find(a.body, STR("src=")) < 0);
    kit_close_web(&k);
}

/* --- the script, in node with a canvas that writes down what is drawn --- */

static const char fake_browser[] =
    "const log = [];\n"
    "const ctx = () => new Proxy({measureText: t => ({width: 50 * t.length})}, {\n"
    "  get: (o, k) => k in o ? o[k] : (...a) => { if (['fillText', 'fill', 'stroke', "
    "'drawImage'].includes(k)) log.push(k + ' ' + (typeof a[0] === 'string' ? a[0] : '')); },\n"
    "  set: (o, k, v) => { if (k === 'fillStyle') log.push(k + ' ' + v); o[k] = v; return true; "
    "}});\n"
    "globalThis.Path2D = class { moveTo(){} lineTo(){} rect(){} closePath(){} bezierCurveTo(){} "
    "};\n"
    "globalThis.createImageBitmap = async () => ({}); globalThis.Blob = class {};\n"
    "globalThis.document = {createElement: () => { const c = ctx(); return {getContext: () => c, "
    "setAttribute: (k, v) => { if (k === 'aria-label') log.push(v); }}; },\n"
    "  getElementById: () => ({append() {}})};\n"
    "process.on('exit', () => console.log(log.filter(l => !l.startsWith('fillStyle white')).join("
    "'|').replace(/\\|fillStyle rgb\\(0,0,0\\)|\\|fillStyle black/g, '').replace(/\\|fillText "
    "/g, '~')));\n";

static const char make_pdfs[] =
    "import zlib\n"
    "c = b'BT /F1 24 Tf 72 700 Td (Hi \\\\(x\\\\)) Tj T* [(A) -200 (B)] TJ ET 1 0 0 rg 10 10 50 50 "
    "re f q 0 0 m 9 9 l S Q /I Do'\n"
    "page = b'<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<<"
    "/F1 5 0 R>>/XObject<</I 6 0 R>>>>>>'\n"
    "font = b'<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>'\n"
    "cat, tree = b'<</Type/Catalog/Pages 2 0 R>>', b'<</Type/Pages/Kids[3 0 R]/Count 1>>'\n"
    "def st(d, data): return b'<<' + d + b'/Length %d>>\\nstream\\n' % len(data) + data + "
    "b'\\nendstream'\n"
    "img = st(b'/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/Filter/DCTDecode', b'jpeg')\n"
    "def pdf(objs): return b'%PDF-1.5\\n' + b''.join(b'%d 0 obj\\n' % n + o + b'\\nendobj\\n' for "
    "n, o in objs) + b'trailer<</Root 1 0 R>>'\n"
    "open('plain.pdf', 'wb').write(pdf([(1, cat), (2, tree), (3, page), (4, st(b'', c)), (5, "
    "font), (6, img)]))\n"
    "inner = [(1, cat), (2, tree), (3, page), (5, font)]; head, body = b'', b''\n"
    "for n, o in inner: head += b'%d %d ' % (n, len(body)); body += o + b' '\n"
    "objs = st(b'/Type/ObjStm/N 4/First %d/Filter/FlateDecode' % len(head), zlib.compress(head + "
    "body))\n"
    "open('packed.pdf', 'wb').write(pdf([(4, st(b'/Filter/FlateDecode', zlib.compress(c))), (7, "
    "objs), (6, img)]))\n"
    "open('broken.pdf', 'wb').write(b'%PDF-1.4 tiny (((<<[')\n";

static const char *draw(struct kit *k, const char *name)
{
    struct web_answer a = kit_get(k, "/view", kit_path(name));
    ptrdiff_t from = str_find(a.body, STR("<script>"));
    own_fd fd = kit_open("page.js", O_WRONLY | O_CREAT | O_TRUNC);

    CHECK(from > 0 && str_ends(a.body, STR("</script></body></html>\n")));
    struct str script = str_from(str_first(a.body, a.body.len - 24), (size_t)from + 8);
    CHECK_OK(fd_write_all(fd, str_of(fake_browser)));
    CHECK_OK(fd_write_all(fd, script));
    return kit_sh("node page.js");
}

TEST(the_script_draws_text_areas_lines_and_images)
{
    static const char want[] = "Page 1 of 1~H~i~(~x~)~A~B|fillStyle rgb(255,0,0)|fill |stroke "
                               "|drawImage \n";
    struct kit k;

    if (access("/usr/bin/node", X_OK) < 0)
        SKIP("needs node");
    kit_python(make_pdfs);
    kit_open_web(&k, false);
    CHECK_STR(draw(&k, "plain.pdf"), want);
    CHECK_STR(draw(&k, "packed.pdf"), want);
    CHECK_HAS(draw(&k, "broken.pdf"), "no pages were found in this PDF");
    kit_close_web(&k);
}
