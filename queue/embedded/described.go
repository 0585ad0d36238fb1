package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
)

// ErrDescription means that the description of a stream is not the one of which its checksum was made. The server would
// leave the stream out, as if it had never been there.
var ErrDescription = errors.New("the store is damaged")

// finishDescriptions completes what a kill has left of a change of a stream, such as another limit. The server replaces
// the description, meta.inf, and then its checksum, meta.sum, each as a whole; between the two the checksum is that of
// the old description.
//
// The new description is then good, because it was synced under another name before it took the old one's: so its
// checksum is written as the server would have done. A flipped byte is told from that by the order of the two files: in
// a complete change the checksum is the newer one. Whatever else does not fit is refused, because a server without the
// stream would be taken for one whose log is lost.
func finishDescriptions(dir string) error {
	folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
	if err != nil {
		return err
	}
	for _, path := range folders {
		if err := finishDescription(path); err != nil {
			return fmt.Errorf("stream %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func finishDescription(path string) error {
	meta, sum := filepath.Join(path, server.JetStreamMetaFile), filepath.Join(path, server.JetStreamMetaFileSum)
	described, err := os.ReadFile(meta)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the server says so
	}
	if err != nil {
		return err
	}
	stored, err := os.ReadFile(sum)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	want, err := checksum(filepath.Base(path), described)
	if err != nil || bytes.Equal(stored, want) {
		return err
	}
	killed, err := newer(meta, sum)
	if err != nil {
		return err
	}
	if !killed || !describes(described, filepath.Base(path)) {
		return fmt.Errorf("%w: its description (%s) does not have its checksum (%s). Put a good copy of the volume back; "+
			"without one, move the store away: `replicator recover` then begins a new life above all versions, and compares "+
			"the tables", ErrDescription, meta, filepath.Base(sum))
	}
	return replaceFile(sum, want)
}

// checksum returns the checksum of a stream's description, as the server makes it.
func checksum(stream string, described []byte) ([]byte, error) {
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, fmt.Errorf("make checksum: %w", err)
	}
	_, _ = h.Write(described) // never fails
	return []byte(hex.EncodeToString(h.Sum(nil))), nil
}

// describes reports whether a text is a whole description of a stream.
func describes(text []byte, stream string) bool {
	var info server.FileStreamInfo
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(&info) == nil && info.Name == stream && !info.Created.IsZero()
}

// newer reports whether a file was written after another one.
func newer(path, than string) (bool, error) {
	a, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(than)
	if err != nil {
		return false, err
	}
	return a.ModTime().After(b.ModTime()), nil
}

// replaceFile replaces a file as a whole, so that a kill leaves the old or the new one.
func replaceFile(path string, content []byte) error {
	next := path + ".tmp"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_SYNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}
