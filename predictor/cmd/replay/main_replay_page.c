/* The page of cdmpp-replay: its skeleton. */
#include "predictor/cmd/replay/main_replay.h"

const char *const cd_main_replay_page_body[] = {
    "<h1 id=\"title\"></h1>\n",
    "<p class=\"lead\" id=\"lead\"></p>\n",
    "<div class=\"cards\" id=\"cards\"></div>\n",
    "<section id=\"table-part\"><h2>Devices and batches</h2>\n",
    "<p class=\"note\" id=\"table-note\"></p>\n",
    "<div class=\"scroll\"><table id=\"table\"></table></div></section>\n",
    "<section id=\"time-part\"><h2>Timeline</h2>\n",
    "<div class=\"tools\"><select id=\"which\" aria-label=\"Estimate\"></select><button id=\"in\" aria-label=\"Zoom in\">+</button><button id=\"out\" aria-label=\"Zoom out\">&minus;</button><button id=\"fit\">Fit</button><button id=\"crit\" aria-pressed=\"true\">Critical path</button><span class=\"note\">wheel: zoom, drag: pan, click: keep the note</span></div>\n",
    "<div class=\"keys\" id=\"keys\"></div>\n",
    "<div class=\"time\"><canvas id=\"lanes\" tabindex=\"0\" role=\"img\" aria-label=\"Operators over time; the tables below hold the same\"></canvas></div>\n",
    "<p class=\"note\" id=\"time-note\"></p></section>\n",
    "<section id=\"if-part\"><h2>What if</h2>\n",
    "<div class=\"if\"><label for=\"if-op\">All of type</label><select id=\"if-op\"></select><label for=\"if-by\">took</label><input type=\"range\" id=\"if-by\" min=\"0\" max=\"200\" value=\"100\" step=\"5\"><output id=\"if-text\"></output><button id=\"if-reset\">Reset</button></div>\n",
    "<p class=\"note\">The order of the operators on each worker is kept here; cdmpp-replay --what-if replays anew.</p></section>\n",
    "<section id=\"ops-part\"><h2>Operators</h2>\n",
    "<div class=\"two\"><div class=\"scroll\"><table id=\"types\"></table></div><div class=\"scroll\"><table id=\"longest\"></table></div></div></section>\n",
    "<p class=\"note\" id=\"foot\"></p>\n",
    "<div id=\"tip\" hidden></div>\n",
    NULL};
