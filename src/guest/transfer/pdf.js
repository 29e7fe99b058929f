/* pdf.js — draws PDF_BASE64, page by page, into canvases at scale 1.5. Part of the viewer's page;
 * loads nothing. It knows text (standard and simple fonts, ToUnicode), lines, areas, colours, JPEG
 * and plain images, object streams and Flate. What it does not know it leaves out; a file it cannot
 * read, or an encrypted one, gets one canvas that says so. */
'use strict';
const SCALE = 1.5;
const bytes = Uint8Array.from(atob(PDF_BASE64), c => c.charCodeAt(0));
const latin = b => { let s = ''; for (let i = 0; i < b.length; i += 8192) s += String.fromCharCode(...b.subarray(i, i + 8192)); return s; };
class Name { constructor(n) { this.n = n; } }
class Ref { constructor(n) { this.n = n; } }
class Op { constructor(n) { this.n = n; } }
class Stream { constructor(dict, data) { this.dict = dict; this.data = data; } }
class Lexer {
  constructor(s, at = 0) { this.s = s; this.at = at; }
  space() {
    for (;;) {
      while (this.at < this.s.length && '\0\t\n\f\r '.includes(this.s[this.at])) this.at++;
      if (this.s[this.at] !== '%') return;
      while (this.at < this.s.length && !'\r\n'.includes(this.s[this.at])) this.at++;
    }
  }
  word() { const m = /[^\0\t\n\f\r ()<>[\]{}/%]*/y; m.lastIndex = this.at; const w = m.exec(this.s)[0]; this.at += w.length; return w; }
  string() {
    let out = '', depth = 1; this.at++;
    while (this.at < this.s.length) {
      let c = this.s[this.at++];
      if (c === '\\') {
        c = this.s[this.at++];
        const oct = /[0-7]{1,3}/y; oct.lastIndex = this.at - 1; const m = oct.exec(this.s);
        if (m) { out += String.fromCharCode(parseInt(m[0], 8) & 255); this.at += m[0].length - 1; }
        else if (c === '\r') { if (this.s[this.at] === '\n') this.at++; }
        else if (c !== '\n') out += { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }[c] ?? c;
        continue;
      }
      if (c === '(') depth++;
      if (c === ')' && --depth === 0) break;
      out += c;
    }
    return out;
  }
  hex() {
    const end = this.s.indexOf('>', this.at); let h = this.s.slice(this.at + 1, end).replace(/[^0-9a-fA-F]/g, ''), out = '';
    if (h.length % 2) h += '0';
    this.at = end < 0 ? this.s.length : end + 1;
    for (let i = 0; i < h.length; i += 2) out += String.fromCharCode(parseInt(h.substr(i, 2), 16));
    return out;
  }
  list(end) {
    const out = []; this.at += end.length;
    for (let depth = 0; depth < 1e6; depth++) {
      this.space();
      if (this.at >= this.s.length) return out;
      if (this.s.startsWith(end, this.at)) { this.at += end.length; return out; }
      const v = this.value();
      if (v instanceof Op && v.n === 'R' && out.length > 1) { out.pop(); out.push(new Ref(out.pop())); }
      else out.push(v);
    }
    return out;
  }
  value() {
    this.space();
    const c = this.s[this.at];
    if (c === undefined) return null;
    if (c === '(') return this.string();
    if (c === '/') { this.at++; return new Name(this.word().replace(/#([0-9a-f]{2})/gi, (_, h) => String.fromCharCode(parseInt(h, 16)))); }
    if (c === '[') return this.list(']');
    if (c === '<' && this.s[this.at + 1] === '<') {
      const l = this.list('>>'), d = {};
      for (let i = 0; i + 1 < l.length; i += 2) if (l[i] instanceof Name) d[l[i].n] = l[i + 1];
      return d;
    }
    if (c === '<') return this.hex();
    const w = this.word();
    if (!w) { this.at++; return new Op(c); }
    if (/^[+-]?(\d+\.?\d*|\.\d+)/.test(w)) return parseFloat(w);
    return w === 'true' ? true : w === 'false' ? false : w === 'null' ? null : new Op(w);
  }
}
const objects = new Map(), text = latin(bytes);
const get = v => { for (let i = 0; v instanceof Ref && i < 50; i++) v = objects.get(v.n); return v; };
const nameOf = v => { v = get(v); return v instanceof Name ? v.n : ''; };
async function inflate(data) {
  const stream = new DecompressionStream('deflate'), reader = stream.readable.getReader(), parts = [];
  const writer = stream.writable.getWriter();
  writer.write(data).catch(() => {}); writer.close().catch(() => {});
  try { for (;;) { const { done, value } = await reader.read(); if (done) break; parts.push(value); } } catch (e) { /* what came is kept */ }
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0)); let at = 0;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}
function unpredict(data, parms) {
  if (!parms || !(get(parms.Predictor) >= 10)) return data;
  const bpp = Math.max(1, (get(parms.Colors) || 1) * (get(parms.BitsPerComponent) || 8) >> 3);
  const row = Math.ceil((get(parms.Columns) || 1) * (get(parms.Colors) || 1) * (get(parms.BitsPerComponent) || 8) / 8);
  const rows = Math.floor(data.length / (row + 1)), out = new Uint8Array(rows * row);
  for (let y = 0; y < rows; y++) for (let x = 0, kind = data[y * (row + 1)]; x < row; x++) {
    const o = y * row + x, a = x >= bpp ? out[o - bpp] : 0, b = y ? out[o - row] : 0, c = x >= bpp && y ? out[o - row - bpp] : 0;
    const p = a + b - c, pa = Math.abs(p - a), pb = Math.abs(p - b), pc = Math.abs(p - c);
    out[o] = data[y * (row + 1) + 1 + x] + [0, a, b, (a + b) >> 1, pa <= pb && pa <= pc ? a : pb <= pc ? b : c][kind] || 0;
  }
  return out;
}
/* Decodes down to what is no Flate; gives the name of the filter that is left. */
async function decode(s) {
  let data = s.data, parms = [get(s.dict.DecodeParms)].flat();
  const filters = [get(s.dict.Filter) ?? []].flat();
  for (let i = 0; i < filters.length; i++) {
    const f = nameOf(filters[i]);
    if (f === 'FlateDecode' || f === 'Fl') data = unpredict(await inflate(data), get(parms[i]));
    else if (f === 'ASCIIHexDecode' || f === 'AHx') data = Uint8Array.from(new Lexer('<' + latin(data)).hex(), c => c.charCodeAt(0));
    else return [data, f];
  }
  return [data, ''];
}
async function readObjects() {
  const re = /(?:^|[\r\n\s])(\d+)\s+\d+\s+obj\b/g;
  for (let m; (m = re.exec(text));) {
    const lex = new Lexer(text, re.lastIndex); let v = lex.value();
    lex.space();
    if (text.startsWith('stream', lex.at) && v && typeof v === 'object') {
      let at = lex.at + 6;
      if (text[at] === '\r') at++;
      if (text[at] === '\n') at++;
      let end = at + v.Length;
      if (typeof v.Length !== 'number' || !/^\s*endstream/.test(text.substr(end, 20))) end = text.indexOf('endstream', at);
      if (end < 0) end = text.length;
      v = new Stream(v, bytes.subarray(at, end)); re.lastIndex = end;
    }
    objects.set(+m[1], v);
  }
  for (const s of [...objects.values()]) if (s instanceof Stream && nameOf(s.dict.Type) === 'ObjStm') {
    const inner = latin((await decode(s))[0]), head = new Lexer(inner), pairs = [];
    for (let i = 0; i < get(s.dict.N); i++) pairs.push([head.value(), head.value()]);
    for (const [n, at] of pairs) if (!objects.has(n)) objects.set(n, new Lexer(inner, get(s.dict.First) + at).value());
  }
}
function listPages(node, up, out, depth = 0) {
  node = get(node);
  if (!node || depth > 60 || out.length >= 500) return;
  const here = { ...up };
  for (const k of ['MediaBox', 'Resources', 'Rotate']) if (node[k] !== undefined) here[k] = node[k];
  if (node.Kids) for (const kid of get(node.Kids) || []) listPages(kid, here, out, depth + 1);
  else out.push({ ...here, Contents: node.Contents });
}
const WIN = { 128: 8364, 130: 8218, 131: 402, 132: 8222, 133: 8230, 134: 8224, 135: 8225, 136: 710, 137: 8240, 139: 8249, 140: 338, 145: 8216, 146: 8217, 147: 8220, 148: 8221, 149: 8226, 150: 8211, 151: 8212, 152: 732, 153: 8482, 155: 8250, 156: 339 };
const GLYPHS = { space: ' ', hyphen: '-', period: '.', comma: ',', colon: ':', quoteright: '\u2019', quoteleft: '\u2018', quotedblleft: '\u201c', quotedblright: '\u201d', endash: '\u2013', emdash: '\u2014', bullet: '\u2022', fi: 'fi', fl: 'fl', ff: 'ff', ffi: 'ffi', ffl: 'ffl', parenleft: '(', parenright: ')', slash: '/', one: '1', two: '2', three: '3', four: '4', five: '5', six: '6', seven: '7', eight: '8', nine: '9', zero: '0' };
const utf16 = s => { let o = ''; for (let i = 0; i + 1 < s.length; i += 2) o += String.fromCharCode(s.charCodeAt(i) << 8 | s.charCodeAt(i + 1)); return o; };
const code = s => [...s].reduce((n, c) => n * 256 + c.charCodeAt(0), 0);
async function readFont(ref) {
  const d = get(ref) || {}, wide = nameOf(d.Subtype) === 'Type0', base = nameOf(d.BaseFont), map = new Map(), widths = new Map();
  const below = wide ? get((get(d.DescendantFonts) || [])[0]) || {} : d;
  const enc = get(d.Encoding);
  if (enc && enc.Differences) { let n = 0; for (const v of get(enc.Differences)) if (typeof v === 'number') n = v; else if (v instanceof Name) { const u = /^uni([0-9A-F]{4})$/.exec(v.n); map.set(n++, u ? String.fromCharCode(parseInt(u[1], 16)) : GLYPHS[v.n] ?? (v.n.length === 1 ? v.n : '')); } }
  const cmap = get(d.ToUnicode);
  if (cmap instanceof Stream) {
    const lex = new Lexer(latin((await decode(cmap))[0])); let stack = [];
    for (let v; lex.space(), lex.at < lex.s.length;) {
      v = lex.value();
      if (!(v instanceof Op)) { stack.push(v); continue; }
      if (v.n === 'endbfchar') for (let i = 0; i + 1 < stack.length; i += 2) map.set(code(stack[i]), utf16(stack[i + 1]));
      if (v.n === 'endbfrange') for (let i = 0; i + 2 < stack.length; i += 3) {
        const lo = code(stack[i]), hi = Math.min(code(stack[i + 1]), lo + 65535), to = stack[i + 2];
        for (let n = lo; n <= hi; n++) map.set(n, Array.isArray(to) ? utf16(to[n - lo] || '') : utf16(to).slice(0, -1) + String.fromCharCode(utf16(to).slice(-1).charCodeAt(0) + n - lo));
      }
      stack = [];
    }
  }
  if (wide) { const w = get(below.W) || []; for (let i = 0; i < w.length;) if (Array.isArray(get(w[i + 1]))) { get(w[i + 1]).forEach((x, k) => widths.set(w[i] + k, get(x))); i += 2; } else { for (let n = w[i]; n <= w[i + 1] && n < 65536; n++) widths.set(n, w[i + 2]); i += 3; } }
  else (get(d.Widths) || []).forEach((x, k) => widths.set((get(d.FirstChar) || 0) + k, get(x)));
  const css = (/Bold/i.test(base) ? 'bold ' : '') + (/Italic|Oblique/i.test(base) ? 'italic ' : '');
  const family = /Courier|Mono/i.test(base) ? 'monospace' : /Times|Serif|Roman/i.test(base) && !/Sans/i.test(base) ? 'serif' : 'sans-serif';
  return { wide, map, widths, css, family, missing: wide ? get(below.DW) ?? 1000 : null };
}
const mul = (m, n) => [m[0] * n[0] + m[1] * n[2], m[0] * n[1] + m[1] * n[3], m[2] * n[0] + m[3] * n[2], m[2] * n[1] + m[3] * n[3], m[4] * n[0] + m[5] * n[2] + n[4], m[4] * n[1] + m[5] * n[3] + n[5]];
function colour(v) {
  const c = v.filter(x => typeof x === 'number').map(x => Math.max(0, Math.min(1, x)));
  const rgb = c.length === 4 ? c.slice(0, 3).map(x => (1 - x) * (1 - c[3])) : c.length === 3 ? c : [c[0] ?? 0, c[0] ?? 0, c[0] ?? 0];
  return `rgb(${rgb.map(x => Math.round(x * 255)).join(',')})`;
}
async function drawImage(ctx, s) {
  const [data, filter] = await decode(s), w = get(s.dict.Width), h = get(s.dict.Height);
  let image = null;
  if (filter === 'DCTDecode') image = await createImageBitmap(new Blob([data], { type: 'image/jpeg' }));
  else if (!filter && get(s.dict.BitsPerComponent) === 8 && w * h < 5e7) {
    const n = Math.round(data.length / (w * h)), px = new ImageData(w, h);
    if (n !== 1 && n !== 3) return;
    for (let i = 0; i < w * h; i++) { for (let k = 0; k < 3; k++) px.data[4 * i + k] = data[n * i + (n === 3 ? k : 0)]; px.data[4 * i + 3] = 255; }
    image = await createImageBitmap(px);
  }
  if (!image) return;
  ctx.save(); ctx.transform(1, 0, 0, -1, 0, 1); ctx.drawImage(image, 0, 0, 1, 1); ctx.restore();
}
async function run(ctx, source, resources, depth = 0) {
  const lex = new Lexer(source), res = get(resources) || {}, fonts = new Map(), saved = [];
  let args = [], g = { fill: 'black', stroke: 'black', font: null, size: 1, gap: 0, word: 0, lead: 0, stretch: 1, rise: 0 }, tm = [1, 0, 0, 1, 0, 0], line = tm, path = new Path2D(), clip = false, at = [0, 0];
  const next = (x, y) => { line = mul([1, 0, 0, 1, x, y], line); tm = line; };
  const show = s => {
    const f = g.font; if (!f || typeof s !== 'string') return;
    ctx.fillStyle = g.fill;
    for (let i = 0; i < s.length; i += f.wide ? 2 : 1) {
      const n = f.wide ? code(s.substr(i, 2)) : s.charCodeAt(i);
      const ch = f.map.get(n) ?? (f.wide ? '' : String.fromCharCode(WIN[n] || n));
      ctx.font = `${f.css}100px ${f.family}`; /* scaled down: tiny sizes are rounded */
      const natural = ctx.measureText(ch).width / 100, w = (f.widths.get(n) ?? f.missing ?? natural * 1000) / 1000;
      if (ch.trim()) {
        ctx.save(); ctx.transform(...mul([g.size * g.stretch, 0, 0, g.size, 0, g.rise], tm));
        ctx.scale((natural > 0 && w > 0 ? Math.min(w / natural, 1.3) : 1) / 100, -0.01); ctx.fillText(ch, 0, 0); ctx.restore();
      }
      tm = mul([1, 0, 0, 1, (w * g.size + g.gap + (n === 32 && !f.wide ? g.word : 0)) * g.stretch, 0], tm);
    }
  };
  const paint = (fill, stroke, rule) => {
    if (fill) { ctx.fillStyle = g.fill; ctx.fill(path, rule); }
    if (stroke) { ctx.strokeStyle = g.stroke; ctx.stroke(path); }
    if (clip) ctx.clip(path, clip);
    clip = false; path = new Path2D();
  };
  const ops = {
    q() { ctx.save(); saved.push({ ...g }); }, Q() { if (saved.length) { ctx.restore(); g = saved.pop(); } },
    cm(...m) { ctx.transform(...m); }, w(x) { ctx.lineWidth = Math.max(x, 0.5); }, J(x) { ctx.lineCap = ['butt', 'round', 'square'][x] || 'butt'; },
    d(a, o) { ctx.setLineDash((a || []).filter(x => x > 0)); ctx.lineDashOffset = o || 0; },
    m(x, y) { path.moveTo(x, y); at = [x, y]; }, l(x, y) { path.lineTo(x, y); at = [x, y]; },
    c(a, b, c, d, x, y) { path.bezierCurveTo(a, b, c, d, x, y); at = [x, y]; }, v(c, d, x, y) { path.bezierCurveTo(...at, c, d, x, y); at = [x, y]; }, y(a, b, x, y) { path.bezierCurveTo(a, b, x, y, x, y); at = [x, y]; },
    h() { path.closePath(); }, re(x, y, w, h) { path.rect(x, y, w, h); at = [x, y]; },
    S() { paint(false, true); }, s() { path.closePath(); paint(false, true); }, f() { paint(true, false, 'nonzero'); }, F() { paint(true, false, 'nonzero'); }, 'f*'() { paint(true, false, 'evenodd'); },
    B() { paint(true, true, 'nonzero'); }, 'B*'() { paint(true, true, 'evenodd'); }, b() { path.closePath(); paint(true, true, 'nonzero'); }, 'b*'() { path.closePath(); paint(true, true, 'evenodd'); }, n() { paint(false, false); },
    W() { clip = 'nonzero'; }, 'W*'() { clip = 'evenodd'; },
    BT() { tm = line = [1, 0, 0, 1, 0, 0]; }, Tc(x) { g.gap = x; }, Tw(x) { g.word = x; }, Tz(x) { g.stretch = x / 100; }, TL(x) { g.lead = x; }, Ts(x) { g.rise = x; },
    Td: next, TD(x, y) { g.lead = -y; next(x, y); }, Tm(...m) { tm = line = m; }, 'T*'() { next(0, -g.lead); },
    Tj: show, "'"(s) { next(0, -g.lead); show(s); }, '"'(w, c, s) { g.word = w; g.gap = c; next(0, -g.lead); show(s); },
    TJ(a) { for (const x of a || []) if (typeof x === 'number') tm = mul([1, 0, 0, 1, -x / 1000 * g.size * g.stretch, 0], tm); else show(x); },
  };
  for (const [low, key] of [['g', 'fill'], ['rg', 'fill'], ['k', 'fill'], ['sc', 'fill'], ['scn', 'fill'], ['G', 'stroke'], ['RG', 'stroke'], ['K', 'stroke'], ['SC', 'stroke'], ['SCN', 'stroke']])
    ops[low] = (...v) => { g[key] = colour(v); };
  const slow = {
    async Tf(n, size) { const ref = (get(res.Font) || {})[n && n.n]; if (!fonts.has(n.n)) fonts.set(n.n, await readFont(ref)); g.font = fonts.get(n.n); g.size = size; },
    async Do(n) {
      const x = get((get(res.XObject) || {})[n && n.n]);
      if (!(x instanceof Stream) || depth > 8) return;
      if (nameOf(x.dict.Subtype) === 'Image') { await drawImage(ctx, x); return; }
      ctx.save(); if (get(x.dict.Matrix)) ctx.transform(...get(x.dict.Matrix));
      await run(ctx, latin((await decode(x))[0]), x.dict.Resources || resources, depth + 1); ctx.restore();
    },
    async BI() { const end = /\sEI\s/g; end.lastIndex = lex.at; lex.at = end.exec(lex.s) ? end.lastIndex : lex.s.length; },
  };
  while (lex.space(), lex.at < lex.s.length) {
    const v = lex.value();
    if (!(v instanceof Op)) { args.push(v); continue; }
    try { if (Object.hasOwn(slow, v.n)) await slow[v.n](...args); else if (Object.hasOwn(ops, v.n)) ops[v.n](...args); } catch (e) { /* left out */ }
    args = [];
  }
  while (saved.length) { ctx.restore(); saved.pop(); }
}
function addCanvas(width, height, label) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(width * SCALE); canvas.height = Math.ceil(height * SCALE);
  canvas.setAttribute('role', 'img'); canvas.setAttribute('aria-label', label);
  document.getElementById('pages').append(canvas);
  const ctx = canvas.getContext('2d');
  ctx.fillStyle = 'white'; ctx.fillRect(0, 0, canvas.width, canvas.height); ctx.scale(SCALE, SCALE);
  return ctx;
}
async function draw() {
  await readObjects();
  const all = [...objects.values()], pages = [];
  const root = all.filter(o => o && !(o instanceof Stream) && nameOf(o.Type) === 'Catalog').pop();
  if (/\/Encrypt\s+\d+\s+\d+\s+R/.test(text)) throw new Error('this PDF is encrypted');
  if (root) listPages(root.Pages, {}, pages);
  if (!pages.length) throw new Error('no pages were found in this PDF');
  for (let i = 0; i < pages.length; i++) {
    const p = pages[i], box = (get(p.MediaBox) || [0, 0, 612, 792]).map(get), turn = ((get(p.Rotate) || 0) % 360 + 360) % 360;
    const w = Math.min(Math.abs(box[2] - box[0]) || 612, 5000), h = Math.min(Math.abs(box[3] - box[1]) || 792, 5000), side = turn % 180;
    const ctx = addCanvas(side ? h : w, side ? w : h, `Page ${i + 1} of ${pages.length}`);
    if (turn) { ctx.translate((side ? h : w) / 2, (side ? w : h) / 2); ctx.rotate(turn * Math.PI / 180); ctx.translate(-w / 2, -h / 2); }
    ctx.transform(1, 0, 0, -1, -Math.min(box[0], box[2]), Math.max(box[1], box[3]));
    let source = '';
    for (const c of [get(p.Contents) ?? []].flat()) { const s = get(c); if (s instanceof Stream) source += latin((await decode(s))[0]) + '\n'; }
    await run(ctx, source, p.Resources);
  }
}
draw().catch(e => { const ctx = addCanvas(612, 120, e.message); ctx.fillStyle = 'black'; ctx.font = '16px sans-serif'; ctx.fillText(e.message, 20, 60); });
