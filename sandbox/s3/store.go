// Package s3 is the sandbox's S3: buckets that are subfolders of one folder, where exports of
// tables are written, and a server of the S3 protocol over that folder. What is put through either
// is seen through the other.
//
// store.go has the folder, backend.go, server.go and lifecycle.go the protocol.
package s3

import (
	"crypto/md5" // S3's own checksum
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Store keeps the objects of all buckets as files: FOLDER/BUCKET/KEY. It is safe for concurrent
// use. Files may be changed or removed behind its back, as tests of damaged exports do.
type Store struct {
	dir string

	mu   sync.Mutex
	sums map[string]sum // MD5 by path, so that a listing does not read every file
}

// sum is the MD5 of a file of this size and time.
type sum struct {
	size int64
	at   time.Time
	md5  [md5.Size]byte
}

// Open returns the store of a folder, which it creates.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open buckets: %w", err)
	}
	return &Store{dir: dir, sums: map[string]sum{}}, nil
}

// Dir returns the folder of a bucket.
func (s *Store) Dir(bucket string) string { return filepath.Join(s.dir, bucket) }

// Exists reports whether there is a bucket of this name.
func (s *Store) Exists(bucket string) bool {
	if !fs.ValidPath(bucket) || strings.Contains(bucket, "/") {
		return false
	}
	info, err := os.Stat(s.Dir(bucket))
	return err == nil && info.IsDir()
}

// Create makes a bucket; it is no error when there is one.
func (s *Store) Create(bucket string) error {
	if !fs.ValidPath(bucket) || strings.Contains(bucket, "/") {
		return fmt.Errorf("create bucket %q: not a name", bucket)
	}
	return os.MkdirAll(s.Dir(bucket), 0o755)
}

// emptyPart is the folder or file of an empty part of a key, as in "acme//AWSDynamoDB": S3 takes a
// key as it is, and a prefix of exports may end in a slash.
const emptyPart = "%2F"

// path returns the file of an object. A key that would leave the bucket has none.
func (s *Store) path(bucket, key string) (string, error) {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		switch part {
		case "":
			parts[i] = emptyPart
		case emptyPart:
			return "", fs.ErrNotExist
		}
	}
	name := strings.Join(parts, "/")
	if !s.Exists(bucket) || !fs.ValidPath(name) {
		return "", fs.ErrNotExist
	}
	return filepath.Join(s.dir, bucket, filepath.FromSlash(name)), nil
}

// keyOf returns the key of an object, given the name of its file in the bucket.
func keyOf(name string) string {
	parts := strings.Split(filepath.ToSlash(name), "/")
	for i, part := range parts {
		if part == emptyPart {
			parts[i] = ""
		}
	}
	return strings.Join(parts, "/")
}

// Put stores an object, which appears whole or not at all.
func (s *Store) Put(bucket, key string, body io.Reader) (err error) {
	path, err := s.path(bucket, key)
	if err != nil {
		return fmt.Errorf("put object %s/%s: %w", bucket, key, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".put-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err == nil {
		err = errors.Join(os.Chmod(f.Name(), 0o644), os.Rename(f.Name(), path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// object is a stored object.
type object struct {
	key, path string
	size      int64
	at        time.Time // when it was stored
}

// find returns an object; errors.Is(err, fs.ErrNotExist) when there is none.
func (s *Store) find(bucket, key string) (object, error) {
	path, err := s.path(bucket, key)
	if err != nil {
		return object{}, err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return object{}, err
	}
	return object{key, path, info.Size(), info.ModTime()}, nil
}

// list returns all objects of a bucket in the order of their keys.
func (s *Store) list(bucket string) (all []object, err error) {
	root := s.Dir(bucket)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		all = append(all, object{keyOf(name), path, info.Size(), info.ModTime()})
		return err
	})
	return all, err
}

// md5 returns the MD5 of an object's body.
func (s *Store) md5(o object) ([]byte, error) {
	s.mu.Lock()
	known, ok := s.sums[o.path]
	s.mu.Unlock()
	if ok && known.size == o.size && known.at.Equal(o.at) {
		return known.md5[:], nil
	}
	f, err := os.Open(o.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	h := md5.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	known = sum{size: o.size, at: o.at, md5: [md5.Size]byte(h.Sum(nil))}
	s.mu.Lock()
	s.sums[o.path] = known
	s.mu.Unlock()
	return known.md5[:], nil
}

// ETag returns the ETag of an object with this MD5. The service stores the data files of exports as
// multipart uploads of one part: their ETag is not the MD5 of the body but the MD5 of the parts'
// MD5s and their number. Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
func ETag(key string, bodyMD5 []byte) string {
	if !strings.Contains(key, "AWSDynamoDB/") || !strings.Contains(key, "/data/") {
		return hex.EncodeToString(bodyMD5)
	}
	parts := md5.Sum(bodyMD5)
	return hex.EncodeToString(parts[:]) + "-1"
}
