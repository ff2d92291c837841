/* Mode "--describe-device" of cdmpp-profile: entries of devices.yaml. */
#include <string.h>

#include "profiler/describe/describe.h"
#include "profiler/cmd/main_profile.h"

cdmpp_status cd_main_profile_describe_check(const cd_main_profile *o, cdmpp_err *err) {
    (void)o, (void)err; /* names are looked at when they are looked for */
    return CDMPP_OK;
}

cdmpp_status cd_main_profile_describe(cd_main_profile *o, cdmpp_err *err) {
    cd_buf b = {0}, quoted = {0}, all = {0};
    const size_t n = o->operand.n ? o->operand.n : 1;
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n && !st; i++) st = cd_describe(o->operand.n ? o->operand.v[i] : "cpu", o->measure, &b, err);
    if (st) {
        cd_buf_free(&b);
        return st;
    }
    if (!o->json) return cd_command_print(&b, err);
    cd_command_quote(&quoted, &b);
    cd_command_json(&all, "cdmpp.device_description", "cdmpp-profile", &quoted);
    return cd_command_print(&all, err);
}
