// Package googleauth lets Google's clients use an AWS identity of any kind.
//
// A credentials configuration of workload identity federation with AWS (environment_id aws1) makes
// Google's library look for AWS credentials in the environment and at EC2's metadata service, and
// nowhere else. So a task of ECS or Fargate, a pod with IRSA or pod identity, a profile and
// credential_process have none for it. Options gives it the AWS SDK's own provider chain in their
// place, which also asks EC2 by the second version of its metadata service.
//
// Source: https://docs.cloud.google.com/iam/docs/workload-identity-federation-with-other-clouds
package googleauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/google/externalaccount"
	"google.golang.org/api/option"
)

// Options returns what Google's clients need beside their own search for credentials: nothing,
// unless the application default credentials are a federation with AWS. It makes no call. Errors
// name no secret.
func Options(ctx context.Context, scopes ...string) ([]option.ClientOption, error) {
	found, err := google.FindDefaultCredentials(ctx, scopes...)
	if err != nil || !federatesAWS(found.JSON) {
		return nil, nil //nolint:nilerr // the client finds the same error, and says it in its own words
	}
	var f configuration
	if err := json.Unmarshal(found.JSON, &f); err != nil {
		return nil, fmt.Errorf("read the credentials configuration: %w", err)
	}
	tokens, err := externalaccount.NewTokenSource(context.WithoutCancel(ctx), externalaccount.Config{
		Audience: f.Audience, SubjectTokenType: f.SubjectTokenType, TokenURL: f.TokenURL,
		ServiceAccountImpersonationURL:             f.ImpersonationURL,
		ServiceAccountImpersonationLifetimeSeconds: f.Impersonation.Lifetime,
		QuotaProjectID: f.QuotaProject, UniverseDomain: f.UniverseDomain, Scopes: scopes,
		AwsSecurityCredentialsSupplier: &chain{},
	})
	if err != nil {
		return nil, fmt.Errorf("read the credentials configuration: %w", err)
	}
	return []option.ClientOption{
		option.WithCredentials(&google.Credentials{ProjectID: found.ProjectID, TokenSource: tokens, JSON: found.JSON}),
	}, nil
}

// configuration is a credentials configuration as `gcloud iam workload-identity-pools
// create-cred-config` writes it.
type configuration struct {
	Type             string `json:"type"`
	Audience         string `json:"audience"`
	SubjectTokenType string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	ImpersonationURL string `json:"service_account_impersonation_url"`
	Impersonation    struct {
		Lifetime int `json:"token_lifetime_seconds"`
	} `json:"service_account_impersonation"`
	QuotaProject   string `json:"quota_project_id"`
	UniverseDomain string `json:"universe_domain"`
	Source         struct {
		Environment string `json:"environment_id"`
	} `json:"credential_source"`
}

func federatesAWS(file []byte) bool {
	var f configuration
	err := json.Unmarshal(file, &f)
	return err == nil && f.Type == "external_account" && strings.HasPrefix(f.Source.Environment, "aws")
}

// chain supplies Google's library with AWS credentials, from the AWS SDK's provider chain.
type chain struct {
	mu  sync.Mutex
	cfg *aws.Config // nil before the first use
}

// AwsRegion implements externalaccount.AwsSecurityCredentialsSupplier.
func (c *chain) AwsRegion(ctx context.Context, _ externalaccount.SupplierOptions) (string, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return "", err
	}
	if cfg.Region == "" {
		return "", errors.New("the AWS region is unknown: set AWS_REGION")
	}
	return cfg.Region, nil
}

// AwsSecurityCredentials implements externalaccount.AwsSecurityCredentialsSupplier.
func (c *chain) AwsSecurityCredentials(
	ctx context.Context, _ externalaccount.SupplierOptions,
) (*externalaccount.AwsSecurityCredentials, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	found, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials for Google Cloud: %w", err)
	}
	return &externalaccount.AwsSecurityCredentials{
		AccessKeyID: found.AccessKeyID, SecretAccessKey: found.SecretAccessKey, SessionToken: found.SessionToken,
	}, nil
}

// load reads the environment and the files of the AWS default chain, once it succeeds.
func (c *chain) load(ctx context.Context) (*aws.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg != nil {
		return c.cfg, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}), config.WithAppID("tailrace"))
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration for Google Cloud: %w", err)
	}
	if cfg.Region == "" { // as on EC2, where the metadata service has it
		again, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}), config.WithEC2IMDSRegion())
		if err == nil {
			cfg.Region = again.Region
		}
	}
	c.cfg = &cfg
	return c.cfg, nil
}
