// Package export writes exports of tables to S3 as DynamoDB does: data files, manifests and their checksums, in the
// service's layout.
//
// Sources:
//   - https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html for layout, manifests
//     and lines. It calls the checksum files .checksum; the service writes .md5, and so does this package.
//   - https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportDescription.html
package export

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" // the service's checksum
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/s3"
)

// Export describes one export. The zero value of a time is an absent one.
type Export struct {
	ARN, ID                   string
	Table, TableARN, TableID  string
	Bucket, Prefix, Owner     string
	Encryption, EncryptionKey string
	Format                    string // DYNAMODB_JSON or ION
	Token                     string // ClientToken
	Time                      time.Time
	Incremental               bool
	From, To                  time.Time // of an incremental export: from inclusive, to exclusive
	View                      string    // of an incremental export: NEW_IMAGE or NEW_AND_OLD_IMAGES
	Filter                    *Filter   `json:",omitempty"` // nil: the export is whole

	Status                      string // IN_PROGRESS, COMPLETED or FAILED
	FailureCode, FailureMessage string
	Start, End                  time.Time
	Items, Bytes                int64 // number of lines; size of the items, which the service bills
}

// NewID returns an id in the service's form, which begins with the time in milliseconds.
func NewID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%014d-%x", now.UnixMilli(), b)
}

// under returns a key below the export's prefix. The service puts a slash behind the prefix, also
// when it ends in one: "acme/" becomes "acme//AWSDynamoDB".
func (e *Export) under(parts ...string) string {
	at := path.Join(parts...)
	if e.Prefix == "" {
		return at
	}
	return e.Prefix + "/" + at
}

// file returns the key of a file next to the export's manifests.
func (e *Export) file(name string) string { return e.under("AWSDynamoDB", e.ID, name) }

// Manifest returns the key of the summary, from which a reader finds everything else.
func (e *Export) Manifest() string { return e.file("manifest-summary.json") }

// Begin writes the marker that shows that the bucket is writable and the export has begun.
func (e *Export) Begin(to *s3.Store) error {
	return to.Put(e.Bucket, e.file("_started"), strings.NewReader(""))
}

// Line is one line of a data file: a JSON object without its line end, and the size that it counts.
type Line struct {
	JSON []byte
	Size int
}

// Write writes the data files, one for each sequence of lines, and then the manifests. It sets
// Items and Bytes; the caller sets End before.
func (e *Export) Write(to *s3.Store, files []iter.Seq[Line]) error {
	var list bytes.Buffer
	for _, lines := range files {
		f, err := e.writeFile(to, lines)
		if err != nil {
			return fmt.Errorf("write data file: %w", err)
		}
		entry, err := json.Marshal(f)
		if err != nil {
			return err
		}
		list.Write(append(entry, '\n'))
	}
	if err := e.writeChecked(to, "manifest-files", list.Bytes()); err != nil {
		return err
	}
	summary, err := json.Marshal(e.summary())
	if err != nil {
		return err
	}
	return e.writeChecked(to, "manifest-summary", summary)
}

// dataFile is a line of manifest-files.json.
type dataFile struct {
	ItemCount     int64  `json:"itemCount"`
	MD5Checksum   string `json:"md5Checksum"` // base64
	ETag          string `json:"etag"`
	DataFileS3Key string `json:"dataFileS3Key"`
}

// writeFile writes one data file, compressed.
func (e *Export) writeFile(to *s3.Store, lines iter.Seq[Line]) (f dataFile, err error) {
	folder := e.ID
	if e.Incremental { // incremental exports of a prefix share one folder of data
		folder = ""
	}
	extension := map[string]string{"ION": ".ion.gz"}[e.Format]
	if extension == "" {
		extension = ".json.gz"
	}
	f.DataFileS3Key = e.under("AWSDynamoDB", folder, "data", randomName()+extension)
	body, compressed := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		compressed.CloseWithError(e.compress(compressed, lines, &f.ItemCount)) // nil ends the file
	}()
	h := md5.New()
	err = to.Put(e.Bucket, f.DataFileS3Key, io.TeeReader(body, h))
	_ = body.CloseWithError(err) // ends compress after a failed Put
	<-done
	e.Items += f.ItemCount
	sum := h.Sum(nil)
	f.MD5Checksum, f.ETag = base64.StdEncoding.EncodeToString(sum), s3.ETag(f.DataFileS3Key, sum)
	return f, err
}

// compress writes lines as a gzip stream. Ion's text form includes JSON, so a line of JSON behind
// the version marker is valid Ion, although the service writes types instead of type descriptors.
func (e *Export) compress(w io.Writer, lines iter.Seq[Line], count *int64) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	for line := range lines {
		if e.Format == "ION" {
			if _, err := io.WriteString(z, "$ion_1_0 "); err != nil {
				return err
			}
		}
		if _, err := z.Write(line.JSON); err != nil {
			return err
		}
		if _, err := z.Write([]byte{'\n'}); err != nil {
			return err
		}
		*count++
		e.Bytes += int64(line.Size)
	}
	return z.Close()
}

// writeChecked writes a manifest and its checksum.
func (e *Export) writeChecked(to *s3.Store, name string, body []byte) error {
	at := e.file(name)
	sum := md5.Sum(body)
	if err := to.Put(e.Bucket, at+".md5", strings.NewReader(base64.StdEncoding.EncodeToString(sum[:]))); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := to.Put(e.Bucket, at+".json", bytes.NewReader(body)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// summary is the content of manifest-summary.json. Absent strings are null, as the service writes
// them.
type summary struct {
	Version            string  `json:"version"`
	ExportARN          string  `json:"exportArn"`
	StartTime          string  `json:"startTime"`
	EndTime            string  `json:"endTime"`
	TableARN           string  `json:"tableArn"`
	TableID            string  `json:"tableId"`
	ExportTime         string  `json:"exportTime,omitempty"`
	ExportFromTime     string  `json:"exportFromTime,omitempty"`
	ExportToTime       string  `json:"exportToTime,omitempty"`
	S3Bucket           string  `json:"s3Bucket"`
	S3Prefix           *string `json:"s3Prefix"`
	S3SseAlgorithm     string  `json:"s3SseAlgorithm"`
	S3SseKmsKeyID      *string `json:"s3SseKmsKeyId"`
	ManifestFilesS3Key string  `json:"manifestFilesS3Key"`
	BilledSizeBytes    int64   `json:"billedSizeBytes"`
	ItemCount          int64   `json:"itemCount"`
	OutputFormat       string  `json:"outputFormat"`
	OutputView         string  `json:"outputView,omitempty"`
	ExportType         string  `json:"exportType,omitempty"`
}

// summary returns the content of manifest-summary.json. The versions are the service's versions for
// the two kinds.
func (e *Export) summary() summary {
	s := summary{
		Version: "2020-06-30", ExportARN: e.ARN, StartTime: stamp(e.Start), EndTime: stamp(e.End),
		TableARN: e.TableARN, TableID: e.TableID, ExportTime: stamp(e.Time),
		S3Bucket: e.Bucket, S3Prefix: optional(e.Prefix),
		S3SseAlgorithm: e.Encryption, S3SseKmsKeyID: optional(e.EncryptionKey),
		ManifestFilesS3Key: e.file("manifest-files.json"),
		BilledSizeBytes:    e.Bytes, ItemCount: e.Items, OutputFormat: e.Format,
	}
	if e.Incremental {
		s.Version, s.ExportTime, s.ExportType, s.OutputView = "2023-08-01", "", "INCREMENTAL_EXPORT", e.View
		s.ExportFromTime, s.ExportToTime = stamp(e.From), stamp(e.To)
	}
	return s
}

// stamp returns a time as manifests spell it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// optional returns nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// randomName returns a name in the form of the service's data files.
func randomName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
