/* The style sheet. Colours after Okabe and Ito, which also differ in lightness and
 * come with dash patterns, so that neither colour vision nor a printer matters. */
#include "learner/report/report_internal.h"

static void put_page(cd_buf *out) {
    cd_buf_puts(out,
        "<style>\n"
        ":root{--bg:#fff;--fg:#1a1f24;--mut:#56616c;--line:#dde2e7;--card:#f4f6f8;--s0:#7b8794;--s1:#c2570c;--s2:#0067ab;"
        "--c0:#0067ab;--c1:#c2570c;--c2:#00815d;--c3:#a9518a;--c4:#9a6a00;--c5:#3c8dbc;--warn:#c2570c;color-scheme:light dark}\n"
        "@media screen and (prefers-color-scheme:dark){:root{--bg:#14181c;--fg:#e3e8ec;--mut:#9aa6b1;--line:#2e363e;--card:#1d2329;"
        "--s0:#8b98a5;--s1:#f0913a;--s2:#5ab4ec;--c0:#5ab4ec;--c1:#f0913a;--c2:#35c79a;--c3:#e39ac4;--c4:#e0b13c;--c5:#9bd0f2;--warn:#f0913a}}\n"
        "*{box-sizing:border-box}\n"
        "body{margin:0 auto;max-width:1120px;padding:28px 24px 64px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\n"
        "h1{font-size:26px;line-height:1.2;margin:0 0 6px;font-weight:650;letter-spacing:-.01em}\n"
        "h2{font-size:19px;margin:44px 0 4px;padding-top:14px;border-top:1px solid var(--line);font-weight:650}\n"
        "h3{font-size:15px;margin:0 0 2px;font-weight:650}\n"
        "p{margin:4px 0 12px;max-width:74ch}.lead{font-size:17px}.mut,figcaption,.note{color:var(--mut)}.note{font-size:13.5px}\n"
        "code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\n"
        "pre{background:var(--card);padding:12px 14px;border-radius:6px;overflow-x:auto;margin:6px 0 14px;white-space:pre-wrap;overflow-wrap:anywhere}\n"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(168px,1fr));gap:12px;margin:18px 0 20px}\n"
        ".card{background:var(--card);border-radius:8px;padding:12px 14px 11px}.card b{display:block;font-size:27px;line-height:1.2;"
        "font-weight:650;font-variant-numeric:tabular-nums;margin:1px 0 2px}.card span{display:block;font-size:13px;line-height:1.35;color:var(--mut)}"
        ".card .t{color:var(--fg);font-weight:600}\n");
}

static void put_plots(cd_buf *out) {
    cd_buf_puts(out,
        ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:24px 36px;align-items:start;margin-top:14px}\n"
        ".scatter{display:grid;grid-template-columns:2.1fr 1fr;gap:8px 28px;margin-top:12px}.scatter>figure:first-child{grid-row:span 2}\n"
        "figure{margin:0;min-width:0;break-inside:avoid}figcaption{font-size:13.5px;line-height:1.4;margin:0 0 6px}\n"
        "figcaption h3{color:var(--fg)}.keys{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--fg);margin:3px 0 2px}\n"
        ".key{white-space:nowrap}.key svg{margin-right:6px}\n"
        "svg.plot{display:block;width:100%;height:auto;font-size:12px;overflow:visible}\n"
        "svg text{fill:var(--mut);font-family:inherit;font-variant-numeric:tabular-nums}svg .lab{fill:var(--fg)}svg .big{font-size:13px;fill:var(--fg)}\n"
        "svg path,svg circle,svg rect{fill:none;stroke:none}\n"
        "svg .axis{stroke:var(--mut)}svg .grid{stroke:var(--line)}svg .diag{stroke:var(--fg);stroke-width:1.2}"
        "svg .edge{stroke:var(--mut);stroke-dasharray:5 4}svg .tol{fill:var(--mut);fill-opacity:.13}\n"
        "svg .l{stroke-width:2;stroke-linejoin:round}svg .l.s0{stroke:var(--s0);stroke-dasharray:2 3}svg .l.s1{stroke:var(--s1);stroke-dasharray:7 4}"
        "svg .l.s2{stroke:var(--s2)}\n"
        "svg .dots{stroke-width:4;stroke-linecap:round;stroke-opacity:.5}svg .dots.s0{stroke:var(--s0)}svg .dots.s1{stroke:var(--s1)}"
        "svg .dots.s2{stroke:var(--s2)}svg .dots.large{stroke-width:7}svg .dots.small{stroke-width:2.4}svg .dots.full{stroke-opacity:1}\n"
        "svg .h.s0{fill:var(--s0)}svg .h.s1{fill:var(--s1)}svg .h.s2{fill:var(--s2)}\n"
        "svg .g1{fill-opacity:.18}svg .g2{fill-opacity:.34}svg .g3{fill-opacity:.5}svg .g4{fill-opacity:.68}svg .g5{fill-opacity:.84}svg .g6{fill-opacity:1}\n");
}

static void put_marks(cd_buf *out) {
    cd_buf_puts(out,
        "svg .b .whisker{stroke:var(--s2);stroke-width:1.2}svg .b .box{fill:var(--s2);fill-opacity:.28;stroke:var(--s2)}svg .b .med{stroke:var(--s2);stroke-width:2.4}\n"
        "svg .span{stroke:var(--s2);stroke-opacity:.35;stroke-width:1.6}svg .hollow{stroke:var(--fg);stroke-width:2;fill:var(--bg)}\n"
        "svg .best{fill:var(--bg);stroke-width:2}svg .expect{stroke:var(--s1);stroke-width:2;stroke-dasharray:7 4}\n");
    for (int i = 0; i < 6; i++)
        cd_buf_putf(out, "svg .c%d{stroke:var(--c%d);stroke-width:1.8}", i, i);
    cd_buf_puts(out, "svg .tr{stroke-dasharray:2 3;stroke-opacity:.8}\n");
}

static void put_tables(cd_buf *out) {
    cd_buf_puts(out,
        ".scroll{overflow-x:auto;margin:6px 0 22px}table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}\n"
        "caption{text-align:left;color:var(--mut);padding:0 0 6px}caption b{color:var(--fg);font-weight:650;font-size:15px;margin-right:6px}\n"
        "th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;vertical-align:middle}\n"
        "th{font-weight:600;color:var(--mut);vertical-align:bottom}td:first-child,th:first-child{text-align:left;padding-left:0}td:last-child,th:last-child{padding-right:0}\n"
        "td.name{white-space:normal;overflow-wrap:anywhere;min-width:150px;line-height:1.3}td.name code{font-size:12px}\n"
        ".slim .opt{display:none}.slim th,.slim td{padding:4px 6px}.slim td.name{min-width:96px}.slim td:first-child,.slim th:first-child{padding-left:0}tr.on td{font-weight:650}td.spark,th.spark{width:210px;min-width:210px;padding-top:0;padding-bottom:0}td.spark svg,th.spark svg{display:block;margin-left:auto}\n"
        "th.spark svg{font-size:11px;font-weight:400}\n"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin:8px 0;font-size:14px}dt{color:var(--mut)}dd{margin:0;overflow-wrap:anywhere}\n");
}

/* Small screens and paper. */
static void put_media(cd_buf *out) {
    cd_buf_puts(out,
        "@media(max-width:640px){body{padding:18px 14px 48px}.scatter{grid-template-columns:1fr 1fr;gap:14px 16px}.scatter>figure:first-child{grid-row:auto;grid-column:span 2}svg.plot{font-size:14px}.small svg.plot{font-size:15px}.small .lab{display:none}.card:last-child:nth-child(odd){grid-column:span 2}.cards{grid-template-columns:1fr 1fr;gap:8px}"
        ".card b{font-size:23px}.opt{display:none}th,td{padding:4px 6px}td.spark,th.spark{width:130px;min-width:130px}td.spark svg,th.spark svg{width:122px;height:auto}th.spark svg{font-size:17px}th.spark .sub{display:none}td.name{min-width:110px}h2{margin-top:32px}"
        "dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:6px}.card{padding:10px 11px}.lead{font-size:16px}}\n"
        "@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}tr{break-inside:avoid}pre{white-space:pre-wrap}}\n"
        "</style>\n");
}

void cd_report_style(cd_buf *out) {
    put_page(out);
    put_plots(out);
    put_marks(out);
    put_tables(out);
    put_media(out);
}
