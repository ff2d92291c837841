/* export -- a model in the forms of others.
 *
 *   members of trees    -- xgboost ------> one of them in XGBoost's UBJ form, as in the model file
 *   members of networks -- safetensors --> their tensors by PyTorch's names,
 *                                          descriptions as metadata
 *   the ensemble        -- onnx ---------> one graph: feature rows and device -> ln seconds
 *                                          (docs/reference/export.md)
 *
 * Doubles and texts that a form cannot hold otherwise are metadata of the file. No state; any
 * thread. */
#ifndef CD_EXPORT_H
#define CD_EXPORT_H
#include "learner/model/model.h"

#define CD_EXPORTS "safetensors|onnx|xgboost"
typedef enum { CD_EXPORT_SAFETENSORS, CD_EXPORT_ONNX, CD_EXPORT_XGBOOST } cd_export_form;

/* Append the file. member: number in header key model.members, -1: all that the form can hold,
 * which for xgboost must be one. safetensors of one member has plain names; of all, names begin
 * with the member's number and a point, as in a ModuleList. onnx is of all. Errors: EUSAGE (no such
 * member, or of another kind, or several), EUNSUPPORTED (onnx: a member that reads loop nests;
 * docs/reference/export.md), ENOMEM, EBACKEND. */
cdmpp_status cd_export_model(const cd_model *m, cd_export_form form, int member, cd_buf *out,
                             cdmpp_err *err);
#endif
