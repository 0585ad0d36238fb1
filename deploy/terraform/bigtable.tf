# The instance, where it is made here, and the app profiles. Each write of the replicator is conditional: a profile must
# route to one cluster and allow single-row transactions. Tables: replicator schema --format terraform.

locals {
  made_instance = var.make_instance == null ? {} : { instance = var.make_instance }
  instance      = var.make_instance == null ? var.bigtable_instance : google_bigtable_instance.made["instance"].name
}

resource "google_bigtable_instance" "made" {
  for_each            = local.made_instance
  project             = var.google_project
  name                = var.bigtable_instance
  deletion_protection = true

  cluster {
    cluster_id   = var.bigtable_cluster
    zone         = each.value.zone
    storage_type = each.value.storage_type

    autoscaling_config {
      min_nodes  = each.value.min_nodes
      max_nodes  = each.value.max_nodes
      cpu_target = each.value.cpu_target
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "google_bigtable_app_profile" "profile" {
  for_each       = { (var.name) = "PRIORITY_HIGH", "${var.name}-copy" = var.copy_priority }
  project        = var.google_project
  instance       = local.instance
  app_profile_id = each.key

  single_cluster_routing {
    cluster_id                 = var.bigtable_cluster
    allow_transactional_writes = true
  }

  standard_isolation {
    priority = each.value
  }

  ignore_warnings = true
}
