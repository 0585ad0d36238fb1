package compare

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/verify/report"
	"github.com/tailrace-cdc/replicator/verify/report/page"
)

// htmlPage is the page that verify --html writes.
type htmlPage struct {
	path  string
	file  *os.File // beside path, until it is complete; only its owner may read it
	found page.Collector
}

// openPage begins a page: a directory that takes no file is named before anything is compared.
func openPage(path string) (*htmlPage, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".verify-*.html") // mode 0600
	if err != nil {
		return nil, exit.Environment(fmt.Errorf("make page: %w", err), "name another file with --html")
	}
	return &htmlPage{path: path, file: file}, nil
}

// lines returns a file of differences that the page sees too. to may be nil.
func (p *htmlPage) lines(to io.Writer) io.Writer {
	if to == nil {
		return &p.found
	}
	return io.MultiWriter(to, &p.found)
}

// finish writes the page and gives it its name.
func (p *htmlPage) finish(o page.Options, tables []report.Table) error {
	err := errors.Join(page.Write(p.file, o, tables, &p.found), p.file.Close())
	if err == nil {
		err = os.Rename(p.file.Name(), p.path)
	}
	if err != nil {
		return exit.Environment(fmt.Errorf("write page: %w", err), "name another file with --html")
	}
	return nil
}

// close removes a page that is not complete.
func (p *htmlPage) close() {
	_ = p.file.Close()
	_ = os.Remove(p.file.Name()) // it is gone when it has its name
}
