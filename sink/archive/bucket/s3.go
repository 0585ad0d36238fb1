package bucket

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

// openS3 opens s3://bucket/prefix with the credentials of the AWS default chain, or of a role that
// they may assume.
func openS3(ctx context.Context, u *url.URL, o Options) (backend, error) {
	b := &inS3{bucket: u.Host}
	if err := b.encryptBy(u.Query()); err != nil {
		return nil, err
	}
	var err error
	if b.client, err = newS3(ctx, u.Query(), o); err != nil {
		return nil, err
	}
	return b, nil
}

// inS3 is a bucket of S3.
type inS3 struct {
	client *s3.Client
	bucket string

	encryption types.ServerSideEncryption // that each object asks for; empty: the bucket's own
	kmsKey     *string                    // nil: the key of the bucket or of the account
}

// encryptBy reads what an object is to be encrypted with. A bucket's default encryption needs none
// of it; a bucket's policy may demand it of each request.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
func (s *inS3) encryptBy(q url.Values) error {
	by, key := types.ServerSideEncryption(q.Get("sse")), q.Get("kms_key")
	if by == "" && key != "" {
		by = types.ServerSideEncryptionAwsKms
	}
	if by != "" && !slices.Contains(by.Values(), by) {
		return refused(failure.Rejected, "write sse=aws:kms, sse=aws:kms:dsse or sse=AES256",
			"%q is no encryption of S3", by)
	}
	if key != "" && by == types.ServerSideEncryptionAes256 {
		return refused(failure.Rejected, "write sse=aws:kms beside kms_key, or leave sse out",
			"kms_key is for KMS, and sse=%s is not", by)
	}
	s.encryption = by
	if key != "" {
		s.kmsKey = &key
	}
	return nil
}

// sumKey is the metadata of an object with the MD5 of its content: its ETag is another digest where
// KMS encrypts it.
const sumKey = "tailrace-md5"

func (s *inS3) put(ctx context.Context, key string, body *io.SectionReader, sum []byte) ([]byte, error) {
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: body, ContentLength: aws.Int64(body.Size()), IfNoneMatch: aws.String("*"),
		ContentType: aws.String(contentType), ContentMD5: aws.String(base64.StdEncoding.EncodeToString(sum)),
		Metadata:             map[string]string{sumKey: hex.EncodeToString(sum)},
		ServerSideEncryption: s.encryption, SSEKMSKeyId: s.kmsKey,
	})
	if err != nil {
		return nil, err
	}
	return sumOfTag(out.ETag), nil
}

// sumOfTag returns the MD5 of which an ETag consists; nil if it is something else.
func sumOfTag(tag *string) []byte {
	sum, err := hex.DecodeString(strings.Trim(aws.ToString(tag), `"`))
	if err != nil || len(sum) != md5.Size {
		return nil
	}
	return sum
}

func (s *inS3) head(ctx context.Context, key string) (stored, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return stored{}, err
	}
	if aws.ToString(out.ETag) == "" || out.ContentLength == nil {
		return stored{}, fmt.Errorf("%w: it has no ETag or no length", errNotStore)
	}
	of := stored{size: *out.ContentLength, sum: sumOfTag(out.ETag), version: *out.ETag}
	if kept, err := hex.DecodeString(out.Metadata[sumKey]); err == nil && len(kept) == md5.Size {
		of.sum = kept
	}
	return of, nil
}

func (s *inS3) list(ctx context.Context, q query) (page, error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &q.prefix, MaxKeys: aws.Int32(int32(q.size))}
	if q.after != "" {
		in.StartAfter = &q.after
	}
	if q.token != "" {
		in.ContinuationToken = &q.token
	}
	out, err := s.client.ListObjectsV2(ctx, in)
	if err != nil {
		return page{}, err
	}
	if aws.ToString(out.Name) == "" { // an empty body, and HTML, are read as a listing without objects
		return page{}, fmt.Errorf("%w: it is no listing of a bucket", errNotStore)
	}
	var p page
	for _, o := range out.Contents {
		if o.Key == nil || o.Size == nil {
			return page{}, fmt.Errorf("%w: it lists an object without key or size", errNotStore)
		}
		p.objects = append(p.objects, Info{Name: *o.Key, Size: *o.Size})
	}
	if p.next = aws.ToString(out.NextContinuationToken); aws.ToBool(out.IsTruncated) != (p.next != "") {
		return page{}, fmt.Errorf("%w: it does not show whether the listing goes on", errNotStore)
	}
	return p, nil
}

func (s *inS3) read(ctx context.Context, key string, of stored, at, n int64) (io.ReadCloser, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket, Key: &key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", at, at+n-1)),
	})
	if err != nil {
		return nil, err
	}
	if aws.ToString(out.ETag) != of.version || out.Body == nil {
		return nil, errors.Join(fmt.Errorf("%w: it is of another object", errNotStore), closeBody(out.Body))
	}
	return out.Body, nil
}

// closeBody closes what there is of a reply.
func closeBody(body io.ReadCloser) error {
	if body == nil {
		return nil
	}
	return body.Close()
}

// lifecycle leaves out rules for objects with tags: objects of an archive have none.
func (s *inS3) lifecycle(ctx context.Context) (all []expiry, err error) {
	out, err := s.client.GetBucketLifecycleConfiguration(ctx,
		&s3.GetBucketLifecycleConfigurationInput{Bucket: &s.bucket})
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchLifecycleConfiguration":
		return nil, nil
	case err != nil:
		return nil, err
	case len(out.Rules) == 0: // as an empty body, and HTML, are read; the service refuses to store no rules
		return nil, fmt.Errorf("%w: it has no rule of a lifecycle", errNotStore)
	}
	for i := range out.Rules {
		r := &out.Rules[i]
		if e := r.Expiration; r.Status != types.ExpirationStatusEnabled || e == nil || e.Days == nil && e.Date == nil {
			continue
		}
		prefix, tagged := aws.ToString(r.Prefix), false //nolint:staticcheck // rules of before 2016 have their prefix there
		if f := r.Filter; f != nil {
			prefix, tagged = cmp.Or(aws.ToString(f.Prefix), prefix), f.Tag != nil
			if f.And != nil {
				prefix, tagged = aws.ToString(f.And.Prefix), tagged || len(f.And.Tags) > 0
			}
		}
		if tagged {
			continue
		}
		all = append(all, expiry{
			id: aws.ToString(r.ID), prefixes: []string{prefix},
			after: time.Duration(aws.ToInt32(r.Expiration.Days)) * day,
		})
	}
	return all, nil
}

func (s *inS3) close() error { return nil }

// newS3 makes a client. An endpoint, in the URL or in AWS_ENDPOINT_URL_S3, is another server than
// AWS: it gets the bucket's name in the path, because names below its host need not resolve.
func newS3(ctx context.Context, q url.Values, o Options) (*s3.Client, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), config.WithAppID("tailrace"),
		// The Content-MD5 is checked by every server; checksums in trailers are not known to all of
		// them.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
		// Calls that change nothing are repeated by package bucket, for all services alike.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	}
	if region := q.Get("region"); region != "" {
		opts = append(opts, config.WithRegion(region))
	} else if o.Region != "" {
		opts = append(opts, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, refused(failure.Denied, "check AWS_PROFILE and the files in ~/.aws",
			"load AWS configuration: %w", err)
	}
	endpoint := host.WithoutUser(strings.TrimSuffix(q.Get("endpoint"), "/"))
	if e, err := url.Parse(endpoint); endpoint != "" && (err != nil || e.Host == "") {
		return nil, refused(failure.Rejected, "write endpoint=https://host:port", "endpoint %q is no URL", endpoint)
	}
	if cfg.Region == "" && endpoint != "" {
		cfg.Region = "us-east-1" // it is part of the signature, and servers that are not AWS have no other
	}
	if cfg.Region == "" {
		return nil, refused(failure.Rejected, "add ?region=REGION to the URL, or set AWS_REGION", "%w",
			errors.New("no region"))
	}
	if role := q.Get("assume_role"); role != "" {
		how := func(r *stscreds.AssumeRoleOptions) {
			r.RoleSessionName = "tailrace"
			if id := q.Get("external_id"); id != "" {
				r.ExternalID = &id
			}
		}
		cfg.Credentials = aws.NewCredentialsCache(
			stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, how))
	}
	return s3.NewFromConfig(cfg, func(c *s3.Options) {
		if endpoint != "" {
			c.BaseEndpoint = &endpoint
		} else if c.BaseEndpoint != nil { // of the environment
			shown := host.WithoutUser(*c.BaseEndpoint)
			c.BaseEndpoint = &shown
		}
		c.UsePathStyle = c.BaseEndpoint != nil
	}), nil
}
