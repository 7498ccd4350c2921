"""How a report looks: paper and ink in both schemes, nothing fetched from anywhere."""

STYLE = """
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--ink:#1b2029;--soft:#5a6373;--edge:#e1e5ec;
--good:#178a5c;--bad:#c23a3a;--chip:#eef2fb;--chip-ink:#2b4c8c}
@media (prefers-color-scheme:dark){:root{--paper:#0f1217;--card:#161a21;--ink:#e8ebf1;--soft:#98a2b3;
--edge:#29303b;--good:#4fd1a0;--bad:#ff8080;--chip:#1f2a40;--chip-ink:#a9c4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:36px 24px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:18px;margin:40px 0 12px}
h3{font-size:14px;margin:0 0 8px}
p{margin:0 0 10px}.soft{color:var(--soft)}.note{margin-top:10px;font-size:13px}
.chip{display:inline-block;background:var(--chip);color:var(--chip-ink);border-radius:99px;padding:1px 10px;
font-size:12.5px;margin-right:6px}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:16px 18px;min-width:0}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(480px,100%),1fr));gap:16px}
.headline{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(330px,100%),1fr));gap:16px}
.numbers{display:grid;grid-template-columns:repeat(4,auto);justify-content:start;gap:4px 20px;margin-top:8px}
.numbers b{display:block;font-size:25px;line-height:1.15;font-weight:650;font-variant-numeric:tabular-nums}
.numbers span{color:var(--soft);font-size:13px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:7px 10px;text-align:left;border-bottom:1px solid var(--edge);vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:nowrap}
td:first-child{white-space:nowrap}
tr:last-child td{border-bottom:0}
.n{text-align:right;white-space:nowrap}
.plot{display:block;width:100%;height:auto}
figure{margin:0}figcaption{color:var(--soft);font-size:13px;margin-top:6px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:5px 18px;margin:0;font-size:14px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.query{font-size:16px;font-weight:600;margin-bottom:2px;overflow-wrap:anywhere}
.shots{display:grid;grid-template-columns:repeat(4,1fr);gap:8px;margin-top:10px}
.shots.hubs{grid-template-columns:repeat(auto-fill,minmax(116px,1fr));gap:12px}
.shot{min-width:0;font-size:12px;color:var(--soft)}
.shot img,.shot .away{width:100%;aspect-ratio:4/3;object-fit:cover;border-radius:8px;display:block;
border:2px solid transparent;background:var(--edge);margin-bottom:4px}
.shot .away{display:flex;align-items:center;justify-content:center;font-size:11px}
.shot.right img,.shot.right .away{border-color:var(--good)}
.shot b{color:var(--ink);font-weight:600}.shot.right b{color:var(--good)}
.name{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.first{color:var(--good)}.last{color:var(--bad)}
footer{margin-top:44px;color:var(--soft);font-size:13px}
"""
