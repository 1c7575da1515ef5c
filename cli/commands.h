/* The subcommands, one file each. */
#ifndef VLP_CLI_COMMANDS_H
#define VLP_CLI_COMMANDS_H

int cmd_data(int argc, char **argv);
int cmd_refs(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_score(int argc, char **argv);
int cmd_mine(int argc, char **argv);
int cmd_serve(int argc, char **argv);

/* Subcommands of `vlp data`. */
int cmd_data_stats(int argc, char **argv);
int cmd_data_audit(int argc, char **argv);
int cmd_data_split(int argc, char **argv);
int cmd_data_import(int argc, char **argv);
int cmd_data_family(int argc, char **argv);
int cmd_data_random(int argc, char **argv);

#endif
