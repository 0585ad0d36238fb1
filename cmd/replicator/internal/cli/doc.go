// Package cli is what all commands share, in package main and in the packages below it: the global flags, the
// configuration, what is printed, and the exit code.
//
// Files, from the top down:
//
//	app.go       global flags, configuration, output, exit code
//	installed.go which configuration file, and the files, variables and user of a packaged service
//	user_unix.go becomes that user (user_windows.go: there is none)
//	signals.go   the first signal ends the context of a command, the second one the process
//	args.go      arguments of a command, and the messages of cobra in our words
//	logs.go      opens logs and dead letters of the configured tables
//	progress.go  how far the owner of a table is with what a command has asked for
//	terminal.go  moving progress, and questions, on a terminal
//	waiting.go   how far the daemon is, while a command waits for it
//	text.go      quoting
package cli
