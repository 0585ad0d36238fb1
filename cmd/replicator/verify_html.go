package main

import (
	"io"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// htmlPage is the page that verify --html writes.
type htmlPage struct {
	*outputFile
	found report.Collector
}

// openPage begins a page.
func openPage(a *cli.App, path string) (*htmlPage, error) {
	file, err := openOutput(a, path, "page", "--html")
	if err != nil {
		return nil, err
	}
	return &htmlPage{outputFile: file}, nil
}

// lines returns a file of differences that also fills the page. to may be nil.
func (p *htmlPage) lines(to io.Writer) io.Writer {
	if to == nil {
		return &p.found
	}
	return io.MultiWriter(to, &p.found)
}

// finish writes the page and gives it its name.
func (p *htmlPage) finish(o report.PageOptions, tables []report.Table) error {
	if err := report.WritePage(p.outputFile, o, tables, &p.found); err != nil {
		return err
	}
	return p.outputFile.finish(0o600)
}
