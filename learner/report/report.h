/* The door of learner/report: other rooms include this header and no other of the room.
 *
 * Figures of a training: metrics, uncertainty, plots, the HTML report, artifacts. */
#ifndef CD_LEARNER_REPORT_DOOR_H
#define CD_LEARNER_REPORT_DOOR_H
#include "learner/report/metric.h"
#include "base/draw/draw.h"
#include "learner/report/train_artifacts.h"
#include "learner/report/uncertainty.h"
#endif
