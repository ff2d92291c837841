/* Real numbers of options. They are no kind of cd_option: their bounds are open in form ("0.05",
 * "1e-3"), and help shows no range for them. */
#include "base/cli/cli.h"

#include <stdlib.h>

cdmpp_status cd_option_number(const char *option, const char *text, double lo, double hi,
                              double *out, cdmpp_err *err) {
    char *end;
    if (!text) return CDMPP_OK;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi))
        return CD_FAIL(err, EUSAGE, "--%s: expected a number in %g..%g, found '%.60s'", option, lo,
                       hi, text);
    *out = v;
    return CDMPP_OK;
}
