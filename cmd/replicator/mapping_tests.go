package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/preflight/mappingtest"
	"github.com/tailrace-cdc/replicator/problem"
)

// mappingTestCommand returns the command `replicator mapping test`.
func (a *app) mappingTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE…",
		Short: "Run unit tests of mappings: items in, cells expected",
		Long: `test compares what a mapping makes of items with what a file expects, without any connection:

  mapping: orders.yaml              # beside this file; without it the default mapping
  keys: [pk:S, sk:S]                # of the source table; also ttl, on_ttl_expiry, strip_global_table_attributes
  tests:
  - name: a payment goes into the row of its invoice
    item: {pk: {S: Invoice-7}, sk: {S: Payment-1}, amount: {N: "12.50"}}
    cells: ["7 | Pay:1 = 12.5"]
  - name: a payment that expires is archived
    was: {pk: {S: Invoice-7}, sk: {S: Payment-1}, amount: {N: "12.50"}}
    expired: true
    cells: ["7 | left", 'archived | {"pk":{"S":"Invoice-7"},"sk":{"S":"Payment-1"}}']

Items are in DynamoDB's typed notation, as blocks or as JSON text. "was" is the item before the change; without "item"
the item was deleted. Lines are those of docs/mapping: row | family:qualifier = value, with @time (ms) where the mapping
chooses the cell's time; row | left; archived | key; dead letter | code; dropped.

A test without "cells" fails, and prints the lines that the mapping gives, ready to be pasted.

At the end test counts how many tests each rule took. Exit 4: a test failed.`,
		Args: a.SomeArgs("FILE"),
		RunE: a.Body(func(_ context.Context, files []string) error { return a.testMappings(files) }),
	}
}

// testMappings runs the tests of files, and prints a line for each test that failed.
func (a *app) testMappings(files []string) error {
	failed := 0
	for _, file := range files {
		r, problems, err := mappingtest.Run(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return failure.Usagef("name the file of tests; `mapping:` in it is relative to that file", "%w", err)
		case err != nil:
			return err
		case problem.AnyError(problems):
			a.Problems(a.Errs, problems)
			return failure.Usagef("fix them", "%s has %s", file, render.Count(problem.CountErrors(problems), "error"))
		}
		failed += r.Failed
		if a.JSON {
			err = a.PrintJSON(struct {
				Schema int `json:"schema"`
				*mappingtest.Result
			}{schema, r})
		} else {
			err = a.printTested(r)
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return failure.Reported(failure.Different)
	}
	return nil
}

// singleQuoted returns a text as YAML has it between single quotes.
func singleQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// printTested prints the tests that failed, and how often each rule was tested.
func (a *app) printTested(r *mappingtest.Result) error {
	for _, v := range r.Tests {
		if v.Passed {
			continue
		}
		a.Print("FAIL %s", v.Name)
		if v.Error != "" {
			a.Print("  %s", v.Error)
		}
		if len(v.Got) > 0 {
			a.Print("  cells:")
		}
		for _, line := range v.Got {
			a.Print("  - %s", singleQuoted(line))
		}
		for _, line := range v.Missing {
			a.Print("  - %s", line)
		}
		for _, line := range v.Surplus {
			a.Print("  + %s", line)
		}
	}
	if r.Failed > 0 {
		a.Print("%s: %s failed, %d passed; - is what the test expects, + what the mapping gives",
			r.File, render.Count(r.Failed, "test"), r.Passed)
	} else {
		a.Print("%s: %s passed", r.File, render.Count(r.Passed, "test"))
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, c := range r.Rules {
		fmt.Fprintf(w, "  rule %s\t%s\n", c.Rule, render.Count(c.Tests, "test"))
	}
	if names := r.Untested(); len(names) > 0 {
		fmt.Fprintf(w, "  not tested: %s\n", strings.Join(names, ", "))
	}
	return w.Flush()
}
