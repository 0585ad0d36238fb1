package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/host"
)

// Backfill sets how the items reach Bigtable that a table held before its stream was read. In the
// file it is one word, scan, export or none, or a block of these keys. read_units holds for every
// reading of the table: backfill, heal, recover and resync. write_rows holds for copies, including
// the copies of a changed mapping.
type Backfill struct {
	// scan reads the table; export reads an export of it (point-in-time recovery); none copies
	// nothing.
	From string `yaml:"from" jsonschema:"enum=scan,enum=export,enum=none"`
	// Read capacity units per second that the copy may take: a number, or a share of a provisioned
	// table's capacity as in 25%. Default: 25% of a provisioned table, 500 of one on demand.
	ReadUnits Units `yaml:"read_units"`
	// Segments of the backfill's parallel scan, at most 4096. Default: by the table's size, from 8
	// to 64.
	Segments int `yaml:"segments"`
	// Rows per second that the copy may write to Bigtable, as in 5000/s. Default: as many as the
	// lanes take beside the stream.
	WriteRows Rate `yaml:"write_rows"`
	// An existing export, as the service wrote it: s3://bucket/prefix/AWSDynamoDB/ID, or a copy of
	// it: gs://bucket/prefix, or a directory.
	URL string `yaml:"url"`
	// S3 bucket for an export that the replicator requests at its first start.
	Bucket string `yaml:"bucket"`
	// Prefix of the export's keys in bucket.
	Prefix string `yaml:"prefix"`
	// Who copies an export: workers are processes of replicator-bulk on a distributed engine, for
	// tables that outgrow one machine. Default: the replicator itself.
	By string `yaml:"by" jsonschema:"enum=workers"`
}

// UnmarshalText reads the short form: where the items come from, and nothing else.
func (b *Backfill) UnmarshalText(text []byte) error {
	switch string(text) {
	case backfillScan, backfillExport, backfillNone:
		*b = Backfill{From: string(text)}
		return nil
	}
	return fmt.Errorf("%q is not a backfill: "+
		"write scan, export or none, or a block such as {from: scan, read_units: 25%%}", text)
}

// The values of Backfill.From; an empty one leaves the choice to the first start.
const (
	backfillScan   = "scan"
	backfillExport = "export"
	backfillNone   = "none"
)

// backfillWorkers is the value of Backfill.By.
const backfillWorkers = "workers"

// ByWorkers reports whether workers outside the replicator copy the table.
func (b *Backfill) ByWorkers() bool { return b.By == backfillWorkers }

// Units is a rate of reading in read capacity units per second: absolute, or a share of the table's
// provisioned capacity. At most one is set; the zero Units is the default.
type Units struct {
	Absolute float64
	Percent  float64
}

// UnmarshalText reads a number of units, or a percentage.
func (u *Units) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v > 0) || percent && v > 100 || v > 1e7 {
		return fmt.Errorf("%q is not a read budget: write read capacity units per second, as in 2000, "+
			"or a share of the provisioned ones, as in 25%%", text)
	}
	if percent {
		*u = Units{Percent: v}
	} else {
		*u = Units{Absolute: v}
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (u Units) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// String returns the notation of the file, empty for the default.
func (u Units) String() string {
	switch {
	case u.Percent > 0:
		return strconv.FormatFloat(u.Percent, 'f', -1, 64) + "%"
	case u.Absolute > 0:
		return strconv.FormatFloat(u.Absolute, 'f', -1, 64)
	}
	return ""
}

// Rate is a number per second, written as in 5000/s. The zero Rate sets no limit.
type Rate float64

// UnmarshalText reads N/s.
func (r *Rate) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(string(text), "/s")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v > 0) || v > 1e9 {
		return fmt.Errorf("%q is not a rate: write a number per second, as in 5000/s", text)
	}
	*r = Rate(v)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (r Rate) MarshalText() ([]byte, error) {
	if r == 0 {
		return nil, nil
	}
	return []byte(strconv.FormatFloat(float64(r), 'f', -1, 64) + "/s"), nil
}

const (
	// startBefore is how far before the first start reading of the stream begins beside a backfill.
	startBefore = 5 * time.Minute
	// retention is how long DynamoDB Streams keeps a record.
	retention = 24 * time.Hour
	// maxSegments bounds what a copy holds in memory and in every snapshot of the log: a mark for
	// each segment, with the last key, which has up to 3 KB. At most 16 segments are read at once,
	// so more of them make no copy faster. DynamoDB takes 1,000,000. Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
	maxSegments = 4096
)

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// backfill checks the backfill of a table against itself and against where the stream's reading
// begins.
func (r *report) backfill(path string, b *Backfill, start Start) {
	if r.reported(path) {
		return
	}
	if b.From != "" {
		r.oneOf(path+".from", b.From, backfillScan, backfillExport, backfillNone)
	}
	if b.Segments < 0 || b.Segments > maxSegments {
		r.fault("bad_value", path+".segments", "leave it out, or a few times the number of readers, for example 64",
			"a scan has 1 to %d segments, not %d", maxSegments, b.Segments)
	}
	if b.By != "" {
		r.oneOf(path+".by", b.By, backfillWorkers)
	}
	if b.ByWorkers() && b.From != backfillExport {
		r.fault("conflict", path+".by", "write from: export, or remove by",
			"workers copy the files of an export, and from is %q", b.From)
	}
	r.export(path, b)
	r.laterStart(path, b, start)
}

// export checks that an export has one place, and that nothing else has one.
func (r *report) export(path string, b *Backfill) {
	const places = "url: of an existing export, or bucket: for one that the first start asks for"
	placed := cmp.Or(b.URL, b.Bucket, b.Prefix) != ""
	switch {
	case b.From != backfillExport && placed:
		r.fault("conflict", path, "write from: export, or remove url, bucket and prefix",
			"url, bucket and prefix are for from: export only")
	case b.From != backfillExport || r.reported(path+".url") || r.reported(path+".bucket"):
	case b.URL == "" && b.Bucket == "":
		r.fault("missing", path, places, "an export needs a place")
	case b.URL != "" && b.Bucket != "":
		r.fault("conflict", path, places, "url and bucket exclude each other: "+
			"an export exists already, or the first start asks for one")
	case b.URL != "" && b.Prefix != "":
		r.fault("conflict", path+".prefix", "write it into url", "prefix is for bucket only")
	case b.URL != "" && !possibleURL(b.URL):
		r.fault("bad_value", path+".url",
			"s3://bucket/prefix/AWSDynamoDB/ID, or a copy: gs://bucket/prefix, the path of a directory",
			"%q is not the place of an export", b.URL)
	case b.Bucket != "" && !bucketName.MatchString(b.Bucket):
		r.fault("bad_value", path+".bucket", "the name alone, without s3:// and without a prefix",
			"%q is not the name of an S3 bucket", b.Bucket)
	}
}

// laterStart refuses a start that leaves out changes if the file also requests a backfill. A start
// that was accepted once only gets older, so a later load accepts it too.
func (r *report) laterStart(path string, b *Backfill, start Start) {
	if b.From != backfillScan && b.From != backfillExport || r.reported("source.start") {
		return
	}
	if what := b.LeavesOut(start); what != "" {
		r.fault("conflict", "source.start", LaterStartHint, "with %s: %s %s", path, b.From, what)
	}
}

// LaterStartHint is what to do about a start that leaves out changes.
const LaterStartHint = "remove source.start, or write backfill: none"

// LeavesOut returns what is lost when reading the stream begins at start while the backfill copies
// the table: what was written after an item was read, and before the first record that is read. It
// is "" if nothing is.
func (b *Backfill) LeavesOut(start Start) string {
	covers, from := startBefore, "five minutes before the first start"
	if b.URL != "" {
		covers, from = retention, "the oldest record of the stream"
	}
	if !start.Latest && !start.At.After(time.Now().Add(-covers)) {
		return ""
	}
	return fmt.Sprintf("the stream is read from %s on; from %s on, changes would be lost", from, start)
}

// possibleURL reports whether url can name a part of a bucket or a directory.
func possibleURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "s3", "gs":
		return u.Host != ""
	case "file":
		return u.Host == "" && u.Path != ""
	}
	return false
}

// resolveURL returns the URL of an export. A path, relative to dir, is the URL of that directory.
func resolveURL(text, dir string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	if abs, err := filepath.Abs(text); err == nil {
		text = abs
	}
	return (&url.URL{Scheme: "file", Path: host.URLPath(text)}).String()
}
