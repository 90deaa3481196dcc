/*
 * The subcommands: one file each, `name.c` with name_main() (two directions of
 * one thing may share a file), and one row each in the table of main.c. argv
 * are the words after the subcommand's name. What a main returns is the exit
 * code: 0, 1 when the work failed, 2 when the command line was wrong.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

enum { EXIT_USAGE = 2 };

int add_worker_main(int argc, char **argv);
int ops_main(int argc, char **argv);
int remove_worker_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int status_main(int argc, char **argv);
int train_main(int argc, char **argv);
int version_main(int argc, char **argv);

#endif
