package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// cutoverFlags are the flags of `replicator cutover`.
type cutoverFlags struct {
	cutover.Options
	out, sign, check, key string
	undo, yes, rehearse   bool
}

// cutoverCommand returns the command `replicator cutover`.
func cutoverCommand(a *cli.App) *cobra.Command {
	var o cutoverFlags
	cmd := &cobra.Command{
		Use:   "cutover --table NAME... [--out FILE | --rehearse] | --check FILE | --undo",
		Short: "Prove that Bigtable holds what DynamoDB holds, at a fence, so that the application may move",
		Long: `cutover waits until nothing is written to the tables of a target any more, raises a fence behind which the
replicator writes nothing to Bigtable, compares both sides, and writes a certificate. Each step is printed as it
happens. It may be interrupted at any step, and the same command goes on, also on another machine.

--rehearse makes the same steps without a fence, while the writers write, and leaves nothing behind: it prints what
would refuse the cutover now, and how long the writers would stand still. Exit 4: something would refuse it.

After verify --for-cutover only the items that have changed since are compared behind the fence; else all are, and it
says why.

Exit 4: it is refused, with the reasons. The fence stays: cutover again, or --undo. Nothing is carried back from
Bigtable to DynamoDB, so the first write of the application to Bigtable is the point of no return: docs/cutover.md.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			switch {
			case o.check != "":
				return checkCertificate(a, o.check, o.key)
			case o.undo:
				return undoCutover(ctx, a, &o)
			case len(o.Tables) == 0:
				return failure.Usagef("`replicator cutover --table NAME`, with all tables of one target",
					"cutover needs tables")
			}
			if o.rehearse {
				return rehearseCutover(ctx, a, &o)
			}
			return runCutover(ctx, a, &o)
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Tables, "table", nil, "source table; all those of one target")
	f.DurationVar(&o.Quiet, "quiet", time.Minute, "how long nothing may have been written before the fence")
	f.StringVar(&o.out, "out", "certificate.json", "file of the certificate; - for stdout")
	f.StringVar(&o.sign, "sign", "", "file with an Ed25519 private key (PEM) that signs the certificate")
	f.BoolVar(&o.Full, "full", false, "compare all items behind the fence, also after verify --for-cutover")
	f.BoolVar(&o.AcceptAged, "accept-aged", false, "accept that cells of families with max_age may have aged away")
	f.BoolVar(&o.AcceptForeign, "accept-foreign", false, "accept cells that the replicator did not write")
	f.StringArrayVar(&o.Accept, "accept", nil, "accept a column without an inverse: columns:RULE/FAMILY:COLUMN")
	f.StringVar(&o.check, "check", "", "check a certificate in place of a cutover")
	f.StringVar(&o.key, "key", "", "with --check: file with the public key (PEM) that it must be signed with")
	f.BoolVar(&o.rehearse, "rehearse", false, "make the steps without a fence, and print how long they take")
	f.BoolVar(&o.undo, "undo", false, "take the fence away: the replicator writes to Bigtable again")
	f.BoolVar(&o.yes, "yes", false, "with --undo: do not ask")
	cmd.MarkFlagsMutuallyExclusive("check", "undo")
	cmd.MarkFlagsMutuallyExclusive("check", "table")
	for _, other := range []string{"check", "undo", "out", "sign"} {
		cmd.MarkFlagsMutuallyExclusive("rehearse", other)
	}
	return cmd
}

// runCutover makes the steps of a cutover and writes its certificate.
func runCutover(ctx context.Context, a *cli.App, o *cutoverFlags) error {
	if o.out == "-" && a.JSON {
		return failure.Usagef("a file, or without --json", "--out - and --json both write to stdout")
	}
	var key ed25519.PrivateKey
	if o.sign != "" {
		var err error
		if key, err = certificate.ReadKey(o.sign); err != nil {
			return failure.Usagef("`openssl genpkey -algorithm ed25519` makes one", "%w", err)
		}
	}
	run, s, end, err := o.begin(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	cert, err := run.Run(ctx)
	if err == nil {
		err = writeCertificate(a, o.out, cert, key, func() error { return run.Certify(ctx) })
	}
	if refused := (*cutover.Refused)(nil); errors.As(err, &refused) {
		return failure.With(failure.Different, hintRefused(refused, run.Fence()), err)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{
			"schema": cli.Schema, "verdict": cert.Verdict, "id": cert.ID, "file": o.out, "items": cert.Verify.Items,
			"signed": key != nil,
		})
	}
	a.Print("%s holds what %s held at the fence: %s. The certificate is in %s.", s.Target,
		strings.Join(o.Tables, ", "), cert.Verify.Sum(), o.out)
	a.Print("Next: point the application at Bigtable. To go back before it writes: `replicator cutover --undo`.")
	return nil
}

// begin opens both sides of the target. end closes them.
func (o *cutoverFlags) begin(
	ctx context.Context, a *cli.App,
) (run *cutover.Cutover, s *pair.Pair, end func(), err error) {
	cfg, err := a.Replicated(ctx, o.Tables[0])
	if err != nil {
		return nil, nil, nil, err
	}
	clients := a.Clients(cfg)
	if s, err = openPair(ctx, a, cfg, clients, o.Tables[0]); err != nil {
		_ = clients.Close()
		return nil, nil, nil, err
	}
	o.Say = func(format string, args ...any) { fmt.Fprintf(a.Errs, format+"\n", args...) }
	o.Program = certificate.Program{Version: a.Version, Go: runtime.Version()}
	return cutover.New(cfg, clients, s, o.Options), s, func() { _ = clients.Close() }, nil
}

// rehearseCutover makes the steps of a cutover without a fence, and prints what they show.
func rehearseCutover(ctx context.Context, a *cli.App, o *cutoverFlags) error {
	run, _, end, err := o.begin(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	r, err := run.Rehearse(ctx)
	if err != nil {
		return err
	}
	if err := run.Publish(ctx, r); err != nil {
		fmt.Fprintf(a.Errs, "%s: metrics and status page do not show it: %v\n", a.Path, err)
	}
	if a.JSON {
		err = a.PrintJSON(r)
	} else {
		a.Printed = true
		render.Rehearsal(a.Out, r)
	}
	if err == nil && len(r.Refusals) > 0 {
		return failure.Reported(failure.Different)
	}
	return err
}

// hintRefused returns what to do after a refusal. fence is the one that was raised or found, "" for
// none.
func hintRefused(refused *cutover.Refused, fence string) string {
	switch {
	case fence == "":
		return "no fence was raised: remove the reasons, then the same command"
	case refused.Undone:
		return "fence " + fence + " was taken away, and the replicator may have written to Bigtable since: `replicator " +
			"status` says whether a fence stands now; the same command goes on with that one, or begins again"
	}
	return "fence " + fence + " stands, and nothing is written to Bigtable: remove the reasons, then the same command; " +
		"or take it away with `replicator cutover --undo`"
}

// writeCertificate writes a certificate, for everybody to read, once it is noted in the logs that
// it was issued: until the file is complete it is of no use. Where that fails, the fence stands,
// and the same command issues another one.
func writeCertificate(
	a *cli.App, path string, cert *certificate.Certificate, key ed25519.PrivateKey, note func() error,
) error {
	b, err := certificate.Encode(cert, key)
	if err != nil {
		return fmt.Errorf("encode certificate: %w", err)
	}
	file, err := openOutput(a, path, "certificate", "--out")
	if err != nil {
		return err
	}
	defer file.close()
	steps := []func() error{func() error { _, err := file.Write(b); return err }, note}
	if file.direct { // what is written to stdout is read at once
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return file.finish(0o644)
}

// openPair opens both sides of the target of a table.
func openPair(
	ctx context.Context, a *cli.App, cfg *config.Config, clients *clients.Clients, table string,
) (*pair.Pair, error) {
	src, err := clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := a.Catalog(ctx, cfg, src, table)
	if err != nil {
		return nil, err
	}
	return pair.Open(ctx, cfg, clients, tables, table)
}

// checkCertificate prints what a certificate states, if it is as it was issued.
func checkCertificate(a *cli.App, path, keyFile string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return failure.Usagef("name the file that `replicator cutover --out` wrote", "%w", err)
	}
	var key ed25519.PublicKey
	if keyFile != "" {
		if key, err = certificate.ReadPublicKey(keyFile); err != nil {
			return failure.Usagef("`openssl pkey -pubout` writes one", "%w", err)
		}
	}
	x, err := certificate.Check(b, key)
	if err != nil {
		return failure.With(failure.Different, "take the file that the cutover wrote", fmt.Errorf("%s: %w", path, err))
	}
	c := x.Certificate
	if a.JSON {
		return a.PrintJSON(map[string]any{
			"schema": cli.Schema, "ok": true, "sha256": x.SHA256, "signed_by": x.SignedBy, "trusted": x.Trusted,
			"certificate": c,
		})
	}
	a.Print("%s: %s is %s to its %s at fence %s, certified %s: %s.", path, c.Target, c.Verdict,
		english.Plural(len(c.Tables), "source table", ""), c.ID, c.Times.Certified.Format(time.RFC3339), c.Verify.Sum())
	switch {
	case x.Trusted:
		a.Print("It is signed with the given key.")
	case x.SignedBy != "":
		a.Print("It is signed with %s; whose key that is only --key can tell.", x.SignedBy)
	default:
		a.Print("It is not signed: its hash shows damage, but an attacker can write another hash.")
	}
	return nil
}

// undoCutover takes the fences of the tables away.
func undoCutover(ctx context.Context, a *cli.App, o *cutoverFlags) error {
	cfg, err := a.Replicated(ctx, "")
	if err != nil {
		return err
	}
	tables, err := catalog.Select(cfg, "")
	if err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	var q *queue.Queue
	if _, err := os.Stat(cfg.Queue.Dir); cfg.Queue.Dir == "" || err == nil {
		if q, err = clients.Queue(ctx); err != nil {
			return err
		}
	}
	names := undoneTables(tables, o.Tables)
	if len(names) == 0 {
		return failure.Usagef("name source tables of the configuration", "no table is called %s",
			strings.Join(o.Tables, ", "))
	}
	fenced, err := cutover.Fenced(ctx, q, sink, cfg.Pipeline, names)
	if err != nil {
		return err
	}
	if len(fenced) == 0 {
		return printUndone(a, nil)
	}
	fmt.Fprintf(a.Errs, "This takes away the fences of %s, and the replicator goes on from there. What the application "+
		"has written\nto Bigtable since may be overwritten by what was written to DynamoDB; nothing carries it back.\n",
		strings.Join(fenced, ", "))
	if !o.yes && !a.Confirmed() {
		return failure.Usagef("repeat it with --yes", "nothing was changed: the undo was not confirmed")
	}
	undone, err := cutover.Undo(ctx, q, sink, cfg.Pipeline, names)
	if err != nil {
		return err
	}
	return printUndone(a, undone)
}

// printUndone prints what became of each fence, and what is due if the application wrote to
// Bigtable behind it: those rows differ from DynamoDB, and no change in a log names them.
func printUndone(a *cli.App, undone []cutover.Undone) error {
	if a.JSON {
		return a.PrintJSON(map[string]any{"schema": cli.Schema, "undone": append([]cutover.Undone{}, undone...)})
	}
	for _, u := range undone {
		if u.Unread == "" {
			a.Print("%s: the fence of cutover %s is gone.", u.Table, u.ID)
			continue
		}
		a.Print("%s: the fence of cutover %s is gone from tailrace_state, and its log cannot be read: %s.", u.Table, u.ID,
			u.Unread)
		a.Print("  next: when the log can go on (`replicator resume` or `recover`, as `replicator status` says), the same " +
			"command takes away the fence that it may hold.")
	}
	if len(undone) == 0 {
		a.Print("No table is fenced.")
		return nil
	}
	a.Print("If the application has written to Bigtable since, its rows differ from DynamoDB until they change there:")
	for _, u := range undone {
		a.Print("  next: `replicator repair --table %s` compares all items and writes what differs again", u.Table)
	}
	a.Print("The next cutover compares all items again: what was compared before the fence does not serve any more.")
	return nil
}

// undoneTables returns all source tables of the targets of the named ones; all of the configuration
// without names.
func undoneTables(tables []config.Table, named []string) (names []string) {
	targets := map[string]bool{}
	for _, t := range tables {
		targets[t.Target] = targets[t.Target] || len(named) == 0 || slices.Contains(named, t.Source)
	}
	for _, t := range tables {
		if targets[t.Target] {
			names = append(names, t.Source)
		}
	}
	return names
}
