/* The counts of cdmpp-predict --stream at its end, for people and for programs. */
#include "predictor/serve/serve.h"

void cd_serve_print_json(cd_buf *b, const cd_serve_stats *n) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.stream\",\"command\":\"cdmpp-predict\",\"requests\":%zu,"
                "\"scored\":%zu,\"bad\":%zu,\"batches\":%zu,"
                "\"cache\":{\"asked\":%llu,\"found\":%llu},\"reasons\":",
                n->asked, n->scored, n->bad, n->batches, (unsigned long long)n->cache_asked,
                (unsigned long long)n->cache_found);
    cd_stream_print_reasons(b, n->reason);
    cd_buf_puts(b, "}\n");
}

void cd_serve_print_log(const cd_serve_stats *n, cd_log *log) {
    cd_log_put(log, CD_LOG_INFO,
               "%zu requests in %zu batches, %zu scored, %zu bad; cache: %llu of %llu found",
               n->asked, n->batches, n->scored, n->bad, (unsigned long long)n->cache_found,
               (unsigned long long)n->cache_asked);
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k])
            cd_log_put(log, CD_LOG_INFO, "%10zu  %s", n->reason[k],
                       cdmpp_status_name((cdmpp_status)k));
}
