/* cdmpp-train: data set files to a model file. */
#include "learner/cmd/main_train.h"

int main(int argc, char **argv) { return cd_main_train(argc, argv, &cd_main_train_options, NULL); }
