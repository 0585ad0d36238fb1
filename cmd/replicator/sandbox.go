package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// sandboxCommand returns the command `replicator sandbox`.
func (a *app) sandboxCommand() *cobra.Command {
	var o sandbox.Options
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run DynamoDB with Streams, S3, Bigtable and NATS on loopback",
		Long: `sandbox runs four servers that speak the real protocols, until it is interrupted:

  replicator sandbox --dir ./sandbox &
  eval "$(replicator sandbox env)"
  aws dynamodb list-tables

Nothing in it is for production; without --dir nothing is kept.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			log := a.Logger(zapcore.WarnLevel).Named("sandbox")
			o.Log = log
			forget := func() {}
			o.Ready = func(env []string) {
				var err error
				if forget, err = sandbox.Remember(env); err != nil {
					log.Warn("`sandbox env` will not find this sandbox", zap.Error(err))
				}
				fmt.Fprintf(a.Errs, `The sandbox is ready. Clients find it with these, or by: eval "$(replicator sandbox env)"

  export %s

Ctrl-C ends it.
`, strings.Join(env, "\n  export "))
			}
			err := sandbox.Run(ctx, o)
			forget()
			if errors.Is(err, host.ErrAddressInUse) {
				return failure.With(failure.Unready,
					"another sandbox, or another server? choose a port with --dynamodb, --bigtable, --nats or --s3", err)
			}
			return err
		}),
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.DynamoDB, "dynamodb", sandbox.DefaultDynamoDB, "address of DynamoDB and its streams")
	f.StringVar(&o.Bigtable, "bigtable", sandbox.DefaultBigtable, "address of Bigtable")
	f.StringVar(&o.NATS, "nats", sandbox.DefaultNATS, "address of NATS with JetStream")
	f.StringVar(&o.S3, "s3", "", "address of S3, for exports of tables (default: DynamoDB's port + 1000)")
	f = cmd.Flags()
	f.StringVar(&o.Exports, "exports", "", "folder of S3's buckets (default: exports in --dir)")
	f.StringVar(&o.Dir, "dir", "", "keep everything here across restarts")
	f.StringVar(&o.ReadyFile, "ready-file", "", "write this file when all four listen; it holds what env prints")
	f.StringVar(&o.Timeline, "timeline", "", "file with a schedule of faults")
	f.BoolVar(&o.CheckSignatures, "check-signatures", false,
		"refuse requests to DynamoDB that are not signed with the credentials that env prints")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of everything random")
	cmd.AddCommand(a.sandboxEnvCommand(&o))
	return cmd
}

// sandboxEnvCommand returns the command `replicator sandbox env`.
func (a *app) sandboxEnvCommand(o *sandbox.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print shell variables with which the usual clients find the sandbox",
		Long: `env prints the variables of the sandbox that was started last on this machine and still runs. Where none runs,
or with --dynamodb, --bigtable, --nats or --s3, it prints those of a sandbox at these addresses.`,
		Args: a.NoArgs(),
	}
	cmd.RunE = a.Body(func(ctx context.Context, _ []string) error {
		lines := sandbox.Env(*o)
		given := slices.ContainsFunc([]string{"dynamodb", "bigtable", "nats", "s3"}, cmd.Flags().Changed)
		if found := sandbox.RememberedEnv(ctx); !given && found != nil {
			lines = found
		}
		env := map[string]any{"schema": schema}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, "=")
			env[name] = value
			if !a.JSON {
				a.Print("export %s=%s", name, cli.ShellQuote(value))
			}
		}
		if a.JSON {
			return a.PrintJSON(env)
		}
		return nil
	})
	return cmd
}
