/* What is behind cdmpp_network and cdmpp_estimate. */
#ifndef CD_NETWORK_HANDLE_INTERNAL_H
#define CD_NETWORK_HANDLE_INTERNAL_H
#include "predictor/api/api_internal.h"
#include "predictor/network_report/network_report.h"

struct cdmpp_network {
    cd_arena arena;
    cd_network_estimate_options ask; /* the fields about networks; its texts are in the arena */
    const char **name;               /* (n) */
    size_t n;
};

struct cdmpp_estimate {
    cd_arena arena; /* the texts of ask */
    cd_network_estimate_options ask;
    cd_log log;               /* prints nothing, keeps warnings for the JSON form */
    cd_network_estimate impl; /* borrows ask, log */
    /* (n_item) each (n_op) of a row that has a result, else NULL */
    bool **critical;
};

#endif
