/* The door of predictor/tune/session: other rooms include this header and no other of the room.
 *
 * A search that measures: rounds, task scheduler, results, resume. */
#ifndef CD_PREDICTOR_TUNE_SESSION_DOOR_H
#define CD_PREDICTOR_TUNE_SESSION_DOOR_H
#include "predictor/tune/session/tune_baseline.h"
#include "predictor/tune/session/tune_emit.h"
#include "predictor/tune/session/tune_result.h"
#include "predictor/tune/session/tune_resume.h"
#endif
