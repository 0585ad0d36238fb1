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

// ErrDescription means that the description of a stream does not match its checksum, or is missing.
// The server leaves such a stream out, as if it had never been there.
var ErrDescription = errors.New("its description on the disk is damaged")

// finishDescription completes a change of a stream, such as another limit, that a kill has
// interrupted. The server replaces the description, meta.inf, and then its checksum, meta.sum, each
// as a whole. Between the two the checksum belongs to the old description, or there is none.
//
// The new description is then good, because it was synced under another name before it replaced the
// old one: so its checksum is written as the server would have done. The order of the two files
// distinguishes this from a flipped byte: in a complete change the checksum is the newer one. Any
// other mismatch is left as it is: a server without the stream must not be taken for a server that
// has lost the log.
func finishDescription(path string) error {
	sum, err := missingChecksum(path)
	if err != nil || sum == nil {
		return err
	}
	return replaceFile(filepath.Join(path, server.JetStreamMetaFileSum), sum)
}

// missingChecksum returns the checksum that a kill has kept from being written; nil if description
// and checksum fit.
func missingChecksum(path string) ([]byte, error) {
	meta, sum := filepath.Join(path, server.JetStreamMetaFile), filepath.Join(path, server.JetStreamMetaFileSum)
	described, err := os.ReadFile(meta)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrDescription, meta)
	}
	if err != nil {
		return nil, err
	}
	want, err := checksum(filepath.Base(path), described)
	if err != nil {
		return nil, err
	}
	stored, err := os.ReadFile(sum)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return nil, err
	case bytes.Equal(stored, want):
		return nil, nil
	}
	killed := missing
	if !missing {
		if killed, err = newer(meta, sum); err != nil {
			return nil, err
		}
	}
	if !killed || !describes(described, filepath.Base(path)) {
		return nil, fmt.Errorf("%w: %s does not have its checksum (%s)", ErrDescription, meta, filepath.Base(sum))
	}
	return want, nil
}

// WhyUnopened returns why the server in this store has not opened a stream; nil if there is no
// folder of it. Call it for a stream that the server does not have. An error other than
// ErrDescription is an error of the volume and proves nothing about the stream.
func WhyUnopened(dir, stream string) error {
	folders, err := streamFolders(dir, stream)
	if err != nil || len(folders) == 0 {
		return err
	}
	return whyUnopened(folders[0])
}

// whyUnopened is WhyUnopened, of a folder.
func whyUnopened(folder string) error {
	if _, err := missingChecksum(folder); err != nil {
		return err
	}
	if err := readAll(folder); err != nil {
		return err
	}
	return fmt.Errorf("%w: the server has left %s out, and its lines in the log say why", ErrDescription, folder)
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
