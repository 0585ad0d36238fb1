package bucket

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/tailrace-cdc/replicator/failure"
)

// openS3 opens s3://bucket/prefix with the credentials of the AWS default chain, or those of a role that they may take.
func openS3(ctx context.Context, u *url.URL, o Options) (*cloud, error) {
	client, err := newS3(ctx, u.Query(), o)
	if err != nil {
		return nil, err
	}
	b, err := s3blob.OpenBucket(ctx, client, u.Host, nil)
	if err != nil {
		return nil, err
	}
	return &cloud{bucket: b, close: func() error { return nil }, key: s3Key, send: func(
		ctx context.Context, key string, body *io.SectionReader, sum []byte,
	) error {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &u.Host, Key: &key, Body: body, ContentLength: aws.Int64(body.Size()), IfNoneMatch: aws.String("*"),
			ContentType: aws.String(contentType), ContentMD5: aws.String(base64.StdEncoding.EncodeToString(sum)),
		})
		return err
	}}, nil
}

func s3Key(o *blob.ListObject) string {
	if raw := (types.Object{}); o.As(&raw) && raw.Key != nil {
		return *raw.Key
	}
	return o.Key
}

// newS3 makes a client. An endpoint, in the URL or in AWS_ENDPOINT_URL_S3, is another server than AWS: it gets the
// bucket's name in the path, because names below its host need not resolve.
func newS3(ctx context.Context, q url.Values, o Options) (*s3.Client, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), config.WithAppID("tailrace"),
		// The Content-MD5 is checked by every server; checksums in trailers are not known to all of them.
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
	endpoint := strings.TrimSuffix(q.Get("endpoint"), "/")
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
		name := func(r *stscreds.AssumeRoleOptions) { r.RoleSessionName = "tailrace" }
		cfg.Credentials = aws.NewCredentialsCache(
			stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, name))
	}
	return s3.NewFromConfig(cfg, func(c *s3.Options) {
		if endpoint != "" {
			c.BaseEndpoint = &endpoint
		}
		c.UsePathStyle = c.BaseEndpoint != nil
	}), nil
}
