output "aws_role_arn" {
  description = "For the chart: serviceAccount.annotations (IRSA) or aws.roleArn."
  value       = aws_iam_role.replicator.arn
}

output "google_service_account" {
  description = "E-mail of the service account; on GKE the annotation iam.gke.io/gcp-service-account."
  value       = google_service_account.replicator.email
}

output "gcp_audience" {
  description = "For the chart: gcp.audience, with google_federation."
  value       = var.google_federation ? var.name : ""
}

output "gcp_credential_config" {
  description = "For the chart: gcp.credentialConfig, with google_federation. It holds no secret."
  value = join("", [for k, provider in google_iam_workload_identity_pool_provider.cluster : jsonencode({
    type                              = "external_account"
    audience                          = "//iam.googleapis.com/${provider.name}"
    subject_token_type                = "urn:ietf:params:oauth:token-type:jwt"
    token_url                         = "https://sts.googleapis.com/v1/token"
    service_account_impersonation_url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${google_service_account.replicator.email}:generateAccessToken"
    credential_source                 = { file = "/var/run/tailrace/gcp/token" }
  })])
}

output "bigtable_instance" {
  description = "For the tables of schema --format terraform, so that they are made after the instance."
  value       = local.instance
}

output "app_profile" {
  description = "For bigtable.app_profile and, with -copy behind it, bigtable.copy_profile."
  value       = google_bigtable_app_profile.profile[var.name].app_profile_id
}
