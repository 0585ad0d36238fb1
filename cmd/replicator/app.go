package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/bars"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

// schema is the format number of every JSON object that the commands print. New fields do not change it; a field with a
// new meaning does.
const schema = 1

// configHint is the hint for a configuration file that cannot be read.
const configHint = "name the file with -c, or let `replicator init --table NAME -o tailrace.yaml` propose one"

// app is what all commands share: the global flags and where output goes.
type app struct {
	out, errs io.Writer
	bars      *bars.Bars // drawn under the log of run on a terminal; else nil

	configPath string
	logLevel   string
	json       bool
	noColor    bool

	path     string // of the command that runs, for messages
	accepted bool   // the command line has no errors; the command runs
	printed  bool   // something was printed on out
}

// body wraps a command's function. It runs after the command line was accepted, so its errors are not usage errors.
func (a *app) body(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.path, a.accepted = cmd.CommandPath(), true
		if _, err := a.level(zapcore.InfoLevel); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
}

// args wraps a check of the arguments, so that its error names the command.
func (a *app) args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		a.path = cmd.CommandPath()
		return check(cmd, args)
	}
}

// level returns the level of --log-level, or the given one without that flag.
func (a *app) level(otherwise zapcore.Level) (zapcore.Level, error) {
	if a.logLevel == "" {
		return otherwise, nil
	}
	level, err := zapcore.ParseLevel(a.logLevel)
	if err != nil {
		return level, exit.Usage("debug, info, warn or error", "read --log-level: %w", err)
	}
	return level, nil
}

// logger returns a logger that writes to stderr: JSON for machines, lines for a person at a terminal.
func (a *app) logger(otherwise zapcore.Level) *zap.Logger {
	level, err := a.level(otherwise)
	if err != nil { // body has returned this error already
		level = otherwise
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if a.terminal() {
		if !a.noColor && os.Getenv("NO_COLOR") == "" {
			encoding.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	out := a.errs
	if a.bars != nil {
		out = a.bars
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level))
}

// config loads the configuration. If it has errors, config prints its problems and returns an error.
func (a *app) config() (*config.Config, error) {
	cfg, problems, err := config.Load(a.configPath)
	if err != nil {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: err, Hint: configHint}
	}
	if problem.AnyError(problems) {
		return nil, a.refused(problems)
	}
	return cfg, nil
}

// problems prints each problem with file, line and what is wrong, the hint, and where its code is explained.
func (a *app) problems(w io.Writer, problems []problem.Problem) {
	problem.Print(w, problems, a.configPath)
}

// clients returns the clients of a command.
func (a *app) clients(cfg *config.Config) *wire.Clients { return wire.ForCommand(cfg, a.logger) }

// catalog parses, describes and compiles all tables; src is nil where the keys are declared. It prints the problems of
// mappings with errors.
func (a *app) catalog(ctx context.Context, cfg *config.Config, src *source.Source) (*catalog.Catalog, error) {
	tables, err := catalog.Load(ctx, cfg, src)
	var mappings *catalog.ProblemsError
	if errors.As(err, &mappings) {
		return nil, a.refused(mappings.Problems)
	}
	return tables, err
}

// refused prints the problems on stderr and returns the error that counts them.
func (a *app) refused(problems []problem.Problem) error {
	a.problems(a.errs, problems)
	return exit.Usage("fix them, then `replicator check`", "%s has %s",
		a.configPath, render.Count(problem.CountErrors(problems), "error"))
}

// print prints a line for people on stdout.
func (a *app) print(format string, args ...any) {
	a.printed = true
	fmt.Fprintf(a.out, format+"\n", args...)
}

// printJSON prints an object on one line of stdout. It must have a field "schema".
func (a *app) printJSON(v any) error {
	a.printed = true
	if err := json.NewEncoder(a.out).Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// verdict prints what went wrong and what to do next, and returns the exit code. An error of cobra before the command
// line was accepted is an error of usage.
func (a *app) verdict(err error) int {
	if err == nil {
		return exit.CodeOK
	}
	code, hint := exit.CodeRuntime, ""
	var known *exit.Error
	switch {
	case errors.As(err, &known):
		code, hint = known.Code, known.Hint
		if known.Err == nil {
			return code
		}
	case !a.accepted:
		code, hint = exit.CodeUsage, "see `"+a.path+" --help`"
	case errors.Is(err, context.Canceled):
		hint = "it was interrupted; running it again is safe"
	}
	what := strings.TrimRight(err.Error(), "\n")
	fmt.Fprintf(a.errs, "%s: %s\n", a.path, what)
	if hint != "" {
		fmt.Fprintf(a.errs, "  next: %s\n", hint)
	}
	if a.json && !a.printed {
		failed := map[string]any{"schema": schema, "error": what, "hint": hint, "exit": code}
		if err := json.NewEncoder(a.out).Encode(failed); err != nil {
			fmt.Fprintf(a.errs, "%s: write error: %v\n", a.path, err)
		}
	}
	return code
}
