package s3

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/johannesboyne/gofakes3"
)

// backend serves a store to the protocol's library. Objects have no metadata and no versions.
type backend struct{ *Store }

// ListBuckets returns all buckets.
func (b backend) ListBuckets() ([]gofakes3.BucketInfo, error) {
	entries, err := os.ReadDir(b.dir)
	var all []gofakes3.BucketInfo
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr == nil && e.IsDir() {
			all = append(all, gofakes3.BucketInfo{Name: e.Name(), CreationDate: gofakes3.NewContentTime(info.ModTime())})
		}
	}
	return all, err
}

// ListBucket returns a page of a bucket's objects in the order of their keys.
func (b backend) ListBucket(name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList,
	error) {
	if !b.Exists(name) {
		return nil, gofakes3.BucketNotFound(name)
	}
	objects, err := b.list(name)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(objects, func(x, y object) int { return strings.Compare(x.key, y.key) })
	out, shown := gofakes3.NewObjectList(), int64(0)
	if prefix == nil {
		prefix = &gofakes3.Prefix{}
	}
	folder := "" // the last common prefix; a page continues after all objects in it
	for _, o := range objects {
		var match gofakes3.PrefixMatch
		if o.key <= page.Marker || !prefix.Match(o.key, &match) || match.CommonPrefix &&
			(match.MatchedPart == folder || strings.HasPrefix(page.Marker, match.MatchedPart)) {
			continue
		}
		if page.MaxKeys > 0 && shown == page.MaxKeys {
			out.IsTruncated = true
			return out, nil
		}
		shown++
		out.NextMarker = o.key
		if match.CommonPrefix {
			folder = match.MatchedPart
			out.AddPrefix(folder)
			continue
		}
		sum, err := b.md5(o)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Add(&gofakes3.Content{Key: o.key, LastModified: gofakes3.NewContentTime(o.at.UTC()),
			ETag: `"` + ETag(o.key, sum) + `"`, Size: o.size})
	}
	out.NextMarker = ""
	return out, nil
}

// CreateBucket makes a bucket.
func (b backend) CreateBucket(name string) error {
	if b.Exists(name) {
		return gofakes3.ResourceError(gofakes3.ErrBucketAlreadyExists, name)
	}
	return b.Create(name)
}

// BucketExists reports whether there is a bucket.
func (b backend) BucketExists(name string) (bool, error) { return b.Exists(name), nil }

// DeleteBucket removes a bucket without objects.
func (b backend) DeleteBucket(name string) error {
	if !b.Exists(name) {
		return gofakes3.BucketNotFound(name)
	}
	objects, err := b.list(name)
	if err == nil && len(objects) > 0 {
		err = gofakes3.ResourceError(gofakes3.ErrBucketNotEmpty, name)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(b.Dir(name))
}

// ForceDeleteBucket removes a bucket with its objects.
func (b backend) ForceDeleteBucket(name string) error {
	if !b.Exists(name) {
		return gofakes3.BucketNotFound(name)
	}
	return os.RemoveAll(b.Dir(name))
}

// GetObject returns an object, or the part of it that a range names.
func (b backend) GetObject(bucket, key string, r *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	out, o, err := b.head(bucket, key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(o.path)
	if err != nil {
		return nil, err
	}
	out.Contents = f
	if out.Range, err = r.Range(o.size); err == nil && out.Range != nil {
		_, err = f.Seek(out.Range.Start, io.SeekStart)
		out.Contents = section{io.LimitReader(f, out.Range.Length), f}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return out, nil
}

// section is a part of a file.
type section struct {
	io.Reader
	io.Closer
}

// HeadObject returns an object without its body.
func (b backend) HeadObject(bucket, key string) (*gofakes3.Object, error) {
	out, _, err := b.head(bucket, key)
	return out, err
}

// head returns an object without its body, and its file.
func (b backend) head(bucket, key string) (*gofakes3.Object, object, error) {
	if !b.Exists(bucket) {
		return nil, object{}, gofakes3.BucketNotFound(bucket)
	}
	o, err := b.find(bucket, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, o, gofakes3.KeyNotFound(key)
	}
	if err != nil {
		return nil, o, err
	}
	sum, err := b.md5(o)
	return &gofakes3.Object{Name: key, Size: o.size, Hash: sum, Contents: http.NoBody,
		Metadata: map[string]string{"Last-Modified": o.at.UTC().Format(http.TimeFormat)}}, o, err
}

// DeleteObject removes an object; it is no error when there is none.
func (b backend) DeleteObject(bucket, key string) (out gofakes3.ObjectDeleteResult, err error) {
	if !b.Exists(bucket) {
		return out, gofakes3.BucketNotFound(bucket)
	}
	o, err := b.find(bucket, key)
	if err == nil {
		err = os.Remove(o.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return out, err
}

// PutObject stores an object.
func (b backend) PutObject(bucket, key string, _ map[string]string, input io.Reader, _ int64,
	conditions *gofakes3.PutConditions) (out gofakes3.PutObjectResult, err error) {
	if conditions != nil {
		info := &gofakes3.ConditionalObjectInfo{}
		if o, _, err := b.head(bucket, key); err == nil {
			info.Exists, info.Hash = true, o.Hash
		}
		if err := gofakes3.CheckPutConditions(conditions, info); err != nil {
			return out, err
		}
	}
	if !b.Exists(bucket) {
		return out, gofakes3.BucketNotFound(bucket)
	}
	return out, b.Put(bucket, key, input)
}

// DeleteMulti removes objects.
func (b backend) DeleteMulti(bucket string, keys ...string) (out gofakes3.MultiDeleteResult, err error) {
	for _, key := range keys {
		if _, err := b.DeleteObject(bucket, key); err != nil {
			out.Error = append(out.Error, gofakes3.ErrorResult{Key: key, Code: gofakes3.ErrInternal, Message: err.Error()})
			continue
		}
		out.Deleted = append(out.Deleted, gofakes3.ObjectID{Key: key})
	}
	return out, nil
}

// CopyObject copies an object.
func (b backend) CopyObject(fromBucket, fromKey, toBucket, toKey string, meta map[string]string) (
	gofakes3.CopyObjectResult, error) {
	return gofakes3.CopyObject(b, fromBucket, fromKey, toBucket, toKey, meta)
}
