package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/failure"
)

// NoArgs refuses any argument.
func (a *App) NoArgs() cobra.PositionalArgs { return a.args("", 0, 0) }

// OneArg requires one argument, which the usage line calls name.
func (a *App) OneArg(name string) cobra.PositionalArgs { return a.args(name, 1, 1) }

// AtMostOneArg accepts no argument or one.
func (a *App) AtMostOneArg(name string) cobra.PositionalArgs { return a.args(name, 0, 1) }

// SomeArgs requires at least one argument.
func (a *App) SomeArgs(name string) cobra.PositionalArgs { return a.args(name, 1, -1) }

// args returns the check of a command that takes least to most arguments of one name; most is -1
// for any number. cobra's own checks count the arguments and do not name them.
func (a *App) args(name string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		a.Path, a.Usage = cmd.CommandPath(), strings.TrimSuffix(cmd.UseLine(), " [flags]")
		if cmd.HasSubCommands() {
			a.Usage = a.Path + " COMMAND"
		}
		switch {
		case len(args) < least:
			return a.usageOf(fmt.Errorf("%s is missing", name))
		case most < 0 || len(args) <= most:
			return nil
		case cmd.HasSubCommands():
			err := fmt.Errorf("unknown command %q", args[0])
			cmd.SuggestionsMinimumDistance = 2
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return failure.With(failure.Usage, fmt.Sprintf("did you mean `%s %s`?", a.Path, like[0]), err)
			}
			return a.usageOf(err)
		case most == 0 && cmd.Flags().Lookup("table") != nil:
			return failure.With(failure.Usage, fmt.Sprintf("`%s --table %s`, if that is a table", a.Path, args[0]),
				fmt.Errorf("it takes no argument, and %q is one", args[0]))
		case most == 0:
			return a.usageOf(fmt.Errorf("it takes no argument, and %q is one", args[0]))
		}
		return a.usageOf(fmt.Errorf("it takes one %s, and %q is another", name, args[most]))
	}
}

// usageOf returns an error of the command line. Its hint is the usage line.
func (a *App) usageOf(err error) error { return failure.With(failure.Usage, a.usage(), err) }

// usage returns the usage line of the command that was called, and where its flags are explained.
func (a *App) usage() string {
	if a.Usage == "" {
		return fmt.Sprintf("see `%s --help`", a.Path)
	}
	return fmt.Sprintf("`%s`, or see `%s --help`", a.Usage, a.Path)
}

// The messages of cobra about flags that exclude each other, that lack one of a group, or that are
// required. It has no types for these errors.
var (
	excluding = regexp.MustCompile(`^if any flags in the group .* none of the others can be; \[(.*)\] were all set$`)
	oneNeeded = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)
	required  = regexp.MustCompile(`^required flag\(s\) (.*) not set$`)
)

// flagErrors puts such a message into a user's words: with the flags as they are typed.
func flagErrors(what string) string {
	for _, known := range []struct {
		form *regexp.Regexp
		as   string
	}{{excluding, "%s exclude each other"}, {oneNeeded, "one of %s is needed"}, {required, "%s is missing"}} {
		if m := known.form.FindStringSubmatch(what); m != nil {
			flags := strings.Fields(strings.NewReplacer(`"`, "", ",", "").Replace(m[1]))
			return fmt.Sprintf(known.as, "--"+strings.Join(flags, ", --"))
		}
	}
	return what
}
