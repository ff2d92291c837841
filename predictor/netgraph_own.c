#include "predictor/netgraphint.h"
cdmpp_status cd_ng_read_own(cd_ng_file *f, cdmpp_err *err) {
    (void)f;
    return CD_FAIL(err, EUNSUPPORTED, "the own form: not yet");
}
cdmpp_status cd_ng_read_tvm(cd_ng_file *f, cdmpp_err *err) {
    (void)f;
    return CD_FAIL(err, EUNSUPPORTED, "a graph executor's form: not yet");
}
cdmpp_status cd_netgraph_write(cd_buf *out, cd_netgraph *const *g, size_t n, cdmpp_err *err) {
    (void)out, (void)g, (void)n;
    return CD_FAIL(err, EUNSUPPORTED, "the own form: not yet");
}
