// Command arrowcount prints how many rows the Parquet files below a directory have, as Apache Arrow
// reads them: a reader from another project than the library that wrote them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func main() {
	rows := int64(0)
	err := filepath.WalkDir(os.Args[1], func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".parquet") {
			return err
		}
		n, err := count(name)
		rows += n
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "arrowcount:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, rows)
}

// count reads every value of a file.
func count(name string) (rows int64, err error) {
	f, err := file.OpenParquetFile(name, false)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", name, err)
	}
	t, err := r.ReadTable(context.Background())
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	defer t.Release()
	return t.NumRows(), nil
}
