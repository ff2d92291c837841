/* replay_trace -- a replay as a trace for chrome://tracing and Perfetto (Trace Event Format, JSON).
 *
 *   process  device, or link      thread  worker      slice  operator, or copy
 *
 * Times are whole nanoseconds, each rounded by itself, so that what did not overlap does not in the trace either. */
#ifndef CD_REPLAY_TRACE_H
#define CD_REPLAY_TRACE_H
#include "base/core/core.h"
#include "predictor/replay/replay.h"

/* Errors: ENOMEM, ERANGE (longer than 2^62 ns). */
cdmpp_status cd_replay_trace(cd_buf *out, const cd_replay_net *n, const cd_replay *r, cdmpp_err *err);
#endif
