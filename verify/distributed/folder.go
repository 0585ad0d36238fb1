package distributed

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

const (
	planName   = "plan.json"
	rangesName = "ranges/"
	rangeEnd   = ".jsonl.gz"
)

// Folder is the folder of one comparison. Any number of processes may use it.
type Folder struct{ bucket bucket.Bucket }

// Open opens the folder of a URL, as package bucket reads it. region is of s3:// URLs that name
// none.
func Open(ctx context.Context, url, region string) (*Folder, error) {
	b, err := bucket.Open(ctx, url, bucket.Options{Region: region})
	if err != nil {
		return nil, err
	}
	return &Folder{b}, nil
}

// Close releases the connections.
func (f *Folder) Close() error { return f.bucket.Close() }

// StorePlan stores the plan. A folder has one: bucket.ErrExists.
func (f *Folder) StorePlan(ctx context.Context, p *Plan) error {
	p.Format = Format
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	return bucket.CreateText(ctx, f.bucket, planName, string(text)+"\n")
}

// Plan reads the plan. bucket.ErrNotFound: there is none.
func (f *Folder) Plan(ctx context.Context) (*Plan, error) {
	text, err := bucket.ReadText(ctx, f.bucket, planName)
	if err != nil {
		return nil, err
	}
	return decodePlan(text)
}

// head is the first line of the findings of a range.
type head struct {
	Format     int    `json:"format"`
	Comparison string `json:"comparison"`
	Range      int    `json:"range"`
}

func rangeName(n int) string { return fmt.Sprintf("%s%06d%s", rangesName, n, rangeEnd) }

// StoreRange stores the findings of a range, which write writes. Where the range has findings
// already, they stay: both are of the same plan.
func (f *Folder) StoreRange(ctx context.Context, p *Plan, n int, write func(io.Writer) error) error {
	file, err := os.CreateTemp("", "replicator-range-")
	if err != nil {
		return fmt.Errorf("store range %d: %w", n, err)
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("store range %d: %w", n, err)
	}
	packed := gzip.NewWriter(file)
	err = json.NewEncoder(packed).Encode(head{Format, p.ID, n})
	if err == nil {
		err = write(packed)
	}
	if err = errors.Join(err, packed.Close()); err != nil {
		return fmt.Errorf("store range %d: %w", n, err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("store range %d: %w", n, err)
	}
	if err := f.bucket.Create(ctx, rangeName(n), file, size); err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("store range %d: %w", n, err)
	}
	return nil
}

// Stored returns which ranges of a plan have findings.
func (f *Folder) Stored(ctx context.Context, p *Plan) (map[int]bool, error) {
	all := map[int]bool{}
	for info, err := range f.bucket.List(ctx, rangesName) {
		if err != nil {
			return nil, fmt.Errorf("list ranges: %w", err)
		}
		number, ok := strings.CutSuffix(strings.TrimPrefix(info.Name, rangesName), rangeEnd)
		if n, err := strconv.Atoi(number); ok && err == nil && n >= 0 && n < p.Ranges() && rangeName(n) == info.Name {
			all[n] = true
		}
	}
	return all, nil
}

// ReadRange calls read with the findings of a range.
//
// Rule 15: findings of another comparison or range are refused, read must see their end, and their
// checksum stands behind it.
func (f *Folder) ReadRange(ctx context.Context, p *Plan, n int, read func(io.Reader) error) error {
	object, err := f.bucket.Open(ctx, rangeName(n))
	if err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	defer object.Close()
	unpacked, err := gzip.NewReader(bufio.NewReaderSize(io.NewSectionReader(object, 0, object.Size()), 1<<20))
	if err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	lines := bufio.NewReader(unpacked)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	var h head
	if err := json.Unmarshal(first, &h); err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	if want := (head{Format, p.ID, n}); h != want {
		return fmt.Errorf("read %s: it holds range %d of comparison %s, in format %d", rangeName(n), h.Range, h.Comparison,
			h.Format)
	}
	if err := read(lines); err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		return fmt.Errorf("read %s: %w", rangeName(n), err)
	}
	return nil
}
