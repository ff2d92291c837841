/* distributed_extract -- one data set from measure logs by all ranks of a process group.
 *
 *   rank r: files of shard r+1 of N -> OUT.rank<r>of<N>     a rerun keeps finished ones
 *   rank 0: all of them, in order   -> OUT                  contents as of one process */
#ifndef CD_DISTRIBUTED_EXTRACT_H
#define CD_DISTRIBUTED_EXTRACT_H
#include "dataset/extract/extract.h"
#include "learner/distributed/process_group.h"

/* x: as for cd_extract_logs, without shards. *s: counts of this rank, on rank 0 of all. Called by all ranks; the error of
 * the first rank that has one is returned on all of them. The parts lie beside x->out, in a folder that all ranks see. */
cdmpp_status cd_distributed_extract(const cd_extract *x, const cd_process_group *group, cd_extract_stats *s, cdmpp_err *err);
#endif
