# The replicator's identity in Google Cloud. The roles are those that `replicator check` prints: a test compares them.

locals {
  replicator_roles = ["roles/bigtable.user", "roles/bigtable.viewer"]
  schema_roles     = ["roles/bigtable.admin"]

  federated = var.google_federation ? { cluster = var.oidc } : {}
}

resource "google_service_account" "replicator" {
  project      = var.google_project
  account_id   = var.name
  display_name = "Replicates DynamoDB into Bigtable"
}

resource "google_bigtable_instance_iam_member" "replicator" {
  for_each = toset(local.replicator_roles)
  project  = var.google_project
  instance = local.instance
  role     = each.value
  member   = "serviceAccount:${google_service_account.replicator.email}"
}

resource "google_bigtable_instance_iam_member" "schema" {
  for_each = { for pair in setproduct(local.schema_roles, var.schema_members) : join(" ", pair) => pair }
  project  = var.google_project
  instance = local.instance
  role     = each.value[0]
  member   = each.value[1]
}

resource "google_service_account_iam_member" "member" {
  for_each           = toset(var.google_members)
  service_account_id = google_service_account.replicator.name
  role               = "roles/iam.workloadIdentityUser"
  member             = each.value
}

# Federation: Google trusts the tokens that the cluster issues to the service account of the chart. No key exists.

resource "google_iam_workload_identity_pool" "cluster" {
  for_each                  = local.federated
  project                   = var.google_project
  workload_identity_pool_id = var.name

  lifecycle {
    precondition {
      condition     = each.value != null
      error_message = "google_federation needs oidc: the cluster whose tokens Google trusts."
    }
  }
}

resource "google_iam_workload_identity_pool_provider" "cluster" {
  for_each                           = local.federated
  project                            = var.google_project
  workload_identity_pool_id          = google_iam_workload_identity_pool.cluster[each.key].workload_identity_pool_id
  workload_identity_pool_provider_id = each.key
  attribute_mapping                  = { "google.subject" = "assertion.sub" }

  oidc {
    issuer_uri        = "https://${each.value.issuer}"
    allowed_audiences = [var.name]
  }
}

resource "google_service_account_iam_member" "federated" {
  for_each           = local.federated
  service_account_id = google_service_account.replicator.name
  role               = "roles/iam.workloadIdentityUser"
  member             = "principal://iam.googleapis.com/${google_iam_workload_identity_pool.cluster[each.key].name}/subject/system:serviceaccount:${each.value.namespace}:${each.value.service_account}"
}
