package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

// Schema is the format number of every JSON object that the commands print. New fields do not
// change it; a field with a new meaning does.
const Schema = 1

// ConfigHint is the hint for a configuration file that cannot be read.
const ConfigHint = "name the file with -c, or let `replicator init --table NAME -o tailrace.yaml` propose one"

// App is what all commands share: the global flags, and where output goes.
type App struct {
	Out, Errs io.Writer
	Bars      *render.Bars // drawn under the log of run on a terminal; else nil

	Version string   // of the program
	Signals *Signals // that end the command; nil: none are noted

	// The global flags.
	ConfigPath string
	LogLevel   string
	LogFormat  string
	JSON       bool
	NoColor    bool

	// WithoutBigtable lets a command run that does not reach Bigtable: what `bigtable` lacks is no error.
	WithoutBigtable bool

	Path     string // of the command that runs, for messages
	Usage    string // its usage line; "" while no command is found
	Accepted bool   // the command line has no errors; the command runs
	Printed  bool   // something was printed on Out
}

// Body wraps a command's function. It runs after the command line was accepted, so its errors are
// not usage errors.
func (a *App) Body(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.Path, a.Accepted = cmd.CommandPath(), true
		if _, err := a.Level(zapcore.InfoLevel); err != nil {
			return err
		}
		if !slices.Contains(logFormats, a.LogFormat) {
			return failure.Usagef("json or console", "--log-format %q is unknown", a.LogFormat)
		}
		f := cmd.Flags().Lookup("format")
		if f != nil && f.Changed && a.JSON && f.Value.String() != "json" {
			return failure.Usagef("one of the two", "--json and --format %s exclude each other", f.Value)
		}
		return run(cmd.Context(), args)
	}
}

// Level returns the level of --log-level, or the given one without that flag.
func (a *App) Level(otherwise zapcore.Level) (zapcore.Level, error) {
	if a.LogLevel == "" {
		return otherwise, nil
	}
	level, err := zapcore.ParseLevel(a.LogLevel)
	if err != nil {
		return level, failure.Usagef("debug, info, warn or error", "read --log-level: %w", err)
	}
	return level, nil
}

// logFormats are the values of --log-format; empty: console on a terminal, else JSON.
var logFormats = []string{"", "json", "console"}

// Logger returns a logger that writes to stderr, in the format of --log-format. Without that flag
// it writes JSON for machines, and lines for a person at a terminal.
func (a *App) Logger(otherwise zapcore.Level) *zap.Logger {
	level, err := a.Level(otherwise)
	if err != nil { // Body has returned this error already
		level = otherwise
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if a.LogFormat == "console" || a.LogFormat == "" && a.Terminal() {
		if a.Terminal() && !a.NoColor && os.Getenv("NO_COLOR") == "" {
			encoding.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	out := a.Errs
	if a.Bars != nil {
		out = a.Bars
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level))
}

// LibraryLogs sends what libraries log with Go's standard logger to the log of the command, until
// undo is called. Google's libraries do; without it, plain text stands between the JSON lines.
func (a *App) LibraryLogs() (undo func()) {
	return zap.RedirectStdLog(a.Logger(zapcore.InfoLevel).Named("library"))
}

// Config loads the configuration, with the tables that its selections choose. If it has errors,
// Config prints its problems and returns an error. Tables that cannot be replicated are left out
// and named on stderr.
func (a *App) Config(ctx context.Context) (*config.Config, error) {
	cfg, err := a.File()
	if err != nil || !cfg.Selecting() {
		return cfg, err
	}
	found, err := catalog.ForCommand(ctx, cfg, a.Logger)
	if err != nil {
		return nil, err
	}
	a.Problems(a.Errs, found.Problems)
	if found.Unlisted != nil {
		fmt.Fprintf(a.Errs, "DynamoDB cannot be listed, so the tables are those that have a log: %v\n", found.Unlisted)
	}
	if len(found.Tables) == 0 {
		return nil, failure.With(failure.Unready,
			"`replicator check` shows what they choose; is the region right, or a tag missing?",
			errors.New("no selection chooses a table yet"))
	}
	return found.Config, nil
}

// File is Config that does not look for tables: tables of selections are missing.
func (a *App) File() (*config.Config, error) {
	cfg, problems, err := a.Load()
	if err != nil {
		return nil, failure.With(failure.Usage, ConfigHint, err)
	}
	if a.WithoutBigtable {
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool {
			return p.Code == "missing" && strings.HasPrefix(p.Path, "bigtable.")
		})
	}
	if problem.AnyError(problems) {
		return nil, a.Refused(problems)
	}
	return cfg, nil
}

// Replicated returns the configuration with only the tables that have a target, for commands about
// rows in Bigtable. It refuses a table, by its name if there is one, that has none.
func (a *App) Replicated(ctx context.Context, table string) (*config.Config, error) {
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, err
	}
	some := cfg.Replicated()
	if len(some.Tables) == 0 {
		return nil, failure.Usagef("`replicator archive verify` is about the archive",
			"no table has a target: what is deleted "+
				"from them is archived, and there are no rows in Bigtable")
	}
	named := func(t config.Table) bool { return t.Source == table }
	if i := slices.IndexFunc(cfg.Tables, named); i >= 0 && cfg.Tables[i].ArchivedOnly() {
		return nil, failure.Usagef("`replicator archive verify` is about the archive",
			"table %s has no target: what is deleted "+
				"from it is archived, and there are no rows in Bigtable", table)
	}
	return some, nil
}

// Problems prints each problem with file, line and what is wrong, the hint, and where its code is
// explained.
func (a *App) Problems(w io.Writer, problems []problem.Problem) {
	problem.Print(w, problems, a.ConfigPath)
}

// Clients returns the clients of a command.
func (a *App) Clients(cfg *config.Config) *clients.Clients { return clients.ForCommand(cfg, a.Logger) }

// Catalog parses, describes and compiles the tables that a command about the named one needs, all
// if named is empty; src is nil where the keys are declared. It prints the problems of mappings
// with errors, and the problems of the tables of selections that it leaves out. It refuses a table
// that the command names and that is left out.
func (a *App) Catalog(
	ctx context.Context, cfg *config.Config, src *source.Source, named string,
) (*catalog.Catalog, error) {
	tables, err := catalog.Load(ctx, catalog.About(cfg, named), src)
	if err == nil {
		for _, l := range tables.LeftOut {
			if l.Source == named {
				err = l.Err
				break
			}
		}
	}
	return a.loaded(tables, err)
}

// EachTarget is Catalog of all tables for a command that works on one target after the other. The
// tables of a target that cannot be described are left out without a problem, with an error.
func (a *App) EachTarget(ctx context.Context, cfg *config.Config, src *source.Source) (*catalog.Catalog, error) {
	tables, err := catalog.LoadEach(ctx, cfg, src)
	return a.loaded(tables, err)
}

// CatalogFor is Catalog where a table is named, and EachTarget where none is. The command ends with
// Missed.
func (a *App) CatalogFor(
	ctx context.Context, cfg *config.Config, src *source.Source, named string,
) (*catalog.Catalog, error) {
	if named == "" {
		return a.EachTarget(ctx, cfg, src)
	}
	return a.Catalog(ctx, cfg, src, named)
}

// Missed returns the error that a command about the tables ends with. Nothing was done about the
// tables that EachTarget has left out without a problem: without another error they are the error.
// Beside differences, which are reported already, they are printed.
func (a *App) Missed(tables *catalog.Catalog, err error) error {
	var errs []error
	var names []string
	for _, l := range tables.LeftOut {
		if len(l.Problems) == 0 { // else they are printed already
			errs, names = append(errs, l.Err), append(names, l.Source)
		}
	}
	if len(errs) == 0 || err != nil && !failure.IsReported(err) {
		return err
	}
	_, hint := failure.Of(errs[0])
	missed := fmt.Errorf("nothing is done about %s and what shares its target: %w", strings.Join(names, ", "),
		errors.Join(errs...))
	if err != nil {
		fmt.Fprintf(a.Errs, "%s: %v\n", a.Path, missed)
		return err
	}
	return failure.With(failure.Unready, hint, missed)
}

// loaded prints the problems of a catalog.
func (a *App) loaded(tables *catalog.Catalog, err error) (*catalog.Catalog, error) {
	var mappings *catalog.ProblemsError
	if errors.As(err, &mappings) {
		return nil, a.Refused(mappings.Problems)
	}
	if err != nil {
		return nil, err
	}
	for _, l := range tables.LeftOut {
		a.Problems(a.Errs, l.Problems)
	}
	return tables, nil
}

// Refused prints the problems on stderr and returns the error that counts them.
func (a *App) Refused(problems []problem.Problem) error {
	a.Problems(a.Errs, problems)
	n, hint := problem.CountErrors(problems), "fix them, then `replicator check`"
	if n == 1 {
		hint = "fix it, then `replicator check`"
	}
	return failure.Usagef(hint, "%s has %s", a.ConfigPath, render.Count(n, "error"))
}

// Print prints a line for people on stdout.
func (a *App) Print(format string, args ...any) {
	a.Printed = true
	fmt.Fprintf(a.Out, format+"\n", args...)
}

// PrintJSON prints an object on one line of stdout. It must have a field "schema".
func (a *App) PrintJSON(v any) error {
	a.Printed = true
	if err := json.NewEncoder(a.Out).Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// The exit codes: scripts branch on them. 0 is for a command that did what it was called for.
const (
	codeRuntime     = 1 // the command was tried and failed, or took too long
	codeUsage       = 2 // the command line or the configuration is wrong
	codeEnvironment = 3 // a server, a permission, a port or a table is missing
	codeDifferences = 4 // the command worked, and what it compared is not equal
)

// exitCode maps the class of an error. An error without a class, or with only a hint, has None.
func exitCode(err error) int {
	switch class, _ := failure.Of(err); class {
	case failure.Usage:
		return codeUsage
	case failure.Different:
		return codeDifferences
	case failure.None, failure.Canceled:
		return codeRuntime
	}
	return codeEnvironment
}

// interrupted reports whether an error ended a call together with the command's context,
// and not what the service said. Both are Unready, so both have the exit code of the environment;
// the hint of the service would be wrong.
func interrupted(ctx context.Context, err error) bool {
	class, _ := failure.Of(err)
	return ctx.Err() != nil && (class == failure.Unready || !failure.Known(err)) &&
		(errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled)
}

// Verdict prints what went wrong and what to do next, and returns the exit code. ctx belongs to the
// command. An error of cobra before the command line was accepted is an error of usage.
func (a *App) Verdict(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	err = clients.Explain(err)
	_, hint := failure.Of(err)
	code := exitCode(err)
	switch {
	case failure.IsReported(err):
		return code
	case a.Accepted && interrupted(ctx, err):
		hint = "it was interrupted; running it again is safe"
	case failure.Known(err):
	case !a.Accepted:
		code, hint = codeUsage, a.usage()
	}
	what := strings.TrimRight(err.Error(), "\n")
	if !a.Accepted {
		what = flagErrors(what)
	}
	fmt.Fprintf(a.Errs, "%s: %s\n", a.Path, what)
	if hint != "" {
		fmt.Fprintf(a.Errs, "  next: %s\n", hint)
	}
	if a.JSON && !a.Printed {
		failed := map[string]any{"schema": Schema, "error": what, "hint": hint, "exit": code}
		if err := json.NewEncoder(a.Out).Encode(failed); err != nil {
			fmt.Fprintf(a.Errs, "%s: write error: %v\n", a.Path, err)
		}
	}
	return code
}

// WantsJSON reports whether a command line has --json, wherever in it the mistake is that kept
// it from being read.
func WantsJSON(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if value, ok := strings.CutPrefix(arg, "--json"); ok {
			on, err := strconv.ParseBool(strings.TrimPrefix(value, "="))
			return value == "" || strings.HasPrefix(value, "=") && (on || err != nil)
		}
	}
	return false
}
