package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// parse reads the command line. What follows -- are flags of Beam, which has 66 of its own, of one
// name space: ours are read apart from them.
func parse(name string, args []string, stderr io.Writer) (*command, error) {
	c := &command{}
	own := flag.NewFlagSet("replicator-bulk "+name, flag.ContinueOnError)
	own.SetOutput(stderr)
	own.Usage = func() {
		_, _ = fmt.Fprint(stderr, usage)
		own.PrintDefaults()
	}
	flags := c.copyFlags
	if name == "verify" {
		flags = c.verifyFlags
	}
	check := flags(own)
	own.StringVar(&c.runner, "runner", engines[0], "`engine`: "+strings.Join(engines, ", "))
	own.BoolVar(&c.dryRun, "dry-run", false, "check what the job needs, and print what it would do")
	if err := own.Parse(args); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	if !slices.Contains(engines, c.runner) {
		return nil, fmt.Errorf("--runner must be one of %s", strings.Join(engines, ", "))
	}
	if err := flag.CommandLine.Parse(own.Args()); err != nil {
		return nil, err
	}
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("flags of Beam follow --, and %q is none", flag.Arg(0))
	}
	return c, c.workerBinary()
}

// copyFlags defines the flags of copy, and returns what checks them.
func (c *command) copyFlags(own *flag.FlagSet) (check func() error) {
	var instance string
	own.StringVar(&c.place.Pipeline, "pipeline", "", "`name` of the pipeline")
	own.StringVar(&c.place.Table, "table", "", "`name` of the source table")
	own.StringVar(&instance, "bigtable", "", "`PROJECT/INSTANCE` of the target")
	own.StringVar(&c.place.Profile, "app-profile", "",
		"app `profile` with which the order is found; the order names the profile for writes")
	own.StringVar(&c.place.Export, "export", "", "`URL` of a copy of the export, as workers reach it: gs://bucket/prefix")
	reach(own, &c.place.AWSRegion, &c.place.Scratch, &c.place.Endpoint, &c.place.S3Endpoint)
	return func() error {
		project, name, ok := strings.Cut(instance, "/")
		c.place.Project, c.place.Instance = project, name
		switch {
		case c.place.Pipeline == "" || c.place.Table == "":
			return errors.New("--pipeline and --table are missing: `replicator status` prints the whole command")
		case !ok || project == "" || name == "":
			return errors.New("--bigtable must be PROJECT/INSTANCE")
		}
		return nil
	}
}

// verifyFlags defines the flags of verify, and returns what checks them.
func (c *command) verifyFlags(own *flag.FlagSet) (check func() error) {
	own.StringVar(&c.at.Folder, "comparison", "",
		"`URL` of the folder with the plan: s3://bucket/prefix, gs://bucket/prefix")
	own.StringVar(&c.at.Exports, "exports", "",
		"`URL` of copies of the exports, as workers reach them, with their keys below it: gs://bucket/prefix")
	reach(own, &c.at.AWSRegion, &c.at.Scratch, &c.at.Endpoint, &c.at.S3Endpoint)
	return func() error {
		if c.at.Folder == "" {
			return errors.New("--comparison is missing: `replicator verify --workers` prints the whole command")
		}
		return nil
	}
}

// reach defines the flags that say how stores are reached.
func reach(own *flag.FlagSet, region, scratch, bigtable, s3 *string) {
	own.StringVar(region, "aws-region", "", "`region` of s3:// URLs that name none")
	own.StringVar(scratch, "scratch", "", "`folder` in which a worker keeps the file that it reads, and what it sorts")
	own.StringVar(bigtable, "bigtable-endpoint", os.Getenv("BIGTABLE_EMULATOR_HOST"), "`host:port` of an emulator")
	own.StringVar(s3, "s3-endpoint", os.Getenv("AWS_ENDPOINT_URL_S3"), "`URL` of another server of S3")
}
