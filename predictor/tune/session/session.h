/* The door of predictor/tune/session: other rooms include this header and no other of the room.
 *
 * Tuning on this machine. It takes tasks, a tuner and a budget; it asks the tuner for candidates, compiles and measures them, gives
 * the next round to the task that promises most, writes each record to a log, and compares the best program of each task with the
 * untuned one. The table of tuners is here too. */
#ifndef CD_PREDICTOR_TUNE_SESSION_DOOR_H
#define CD_PREDICTOR_TUNE_SESSION_DOOR_H
#include "predictor/tune/session/tune_baseline.h"
#include "predictor/tune/session/tune_emit.h"
#include "predictor/tune/session/tune_result.h"
#include "predictor/tune/session/tune_resume.h"
#include "predictor/tune/session/tune_session.h"
#include "predictor/tune/session/tune_tasks.h"
#include "predictor/tune/session/tune_tuner.h"
#endif
