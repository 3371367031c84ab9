// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

const maxPort = 65535

// group is settings about the same thing.
type group struct {
	title   string
	members []setting
}

// groups returns all settings, in the order of the help text.
func groups() []group {
	return []group{
		{"Cluster and ports", cluster()},
		{"Replicas", replicas()},
		{"The process", machine()},
		{"Logs", logs()},
		{"Decisions", decisions()},
		{"Provider", clouds()},
		{"AWS", amazon()},
		{"Azure", microsoft()},
	}
}

func settings() []setting {
	var all []setting
	for _, g := range groups() {
		all = append(all, g.members...)
	}
	return all
}

func cluster() []setting {
	return []setting{
		setting{flag: "kubeconfig", values: "a file",
			meaning: "kubeconfig file; without it, KUBECONFIG, the pod's service account and ~/.kube/config are tried",
		}.text(func(c *Config) *string { return &c.Kubeconfig }),
		setting{env: "SYSTEM_NAMESPACE", chart: "the release's namespace", values: "a namespace",
			meaning: "the namespace the process was installed in",
		}.text(func(c *Config) *string { return &c.SystemNamespace }),
		setting{flag: "karpenter-service", env: "KARPENTER_SERVICE", chart: "the release's name",
			meaning: "accepted for compatibility, has no effect",
		}.text(func(c *Config) *string { return &c.KarpenterService }),
		setting{flag: "kube-client-qps", env: "KUBE_CLIENT_QPS", preset: "200",
			meaning: "requests per second to the API server, on average; further requests wait",
		}.integer(func(c *Config) *int { return &c.KubeClientQPS }, 1, math.MaxInt32),
		setting{flag: "kube-client-burst", env: "KUBE_CLIENT_BURST", preset: "300",
			meaning: "largest burst of requests to the API server",
		}.integer(func(c *Config) *int { return &c.KubeClientBurst }, 1, math.MaxInt32),
		setting{flag: "metrics-port", env: "METRICS_PORT", chart: "controller.metrics.port", preset: "8080",
			meaning: "TCP port of /metrics, plain HTTP unless metrics-secure is set; 0 serves none",
		}.integer(func(c *Config) *int { return &c.MetricsPort }, 0, maxPort),
		setting{flag: "metrics-secure", env: "METRICS_SECURE", chart: "controller.metrics.secure", preset: "false",
			meaning: "serve the metrics port over TLS, to clients that the API server allows to get the path",
		}.boolean(func(c *Config) *bool { return &c.MetricsSecure }),
		setting{flag: "metrics-cert-dir", env: "METRICS_CERT_DIR", chart: "controller.metrics.certDir", values: "a directory",
			meaning: "where tls.crt and tls.key for metrics-secure are, read again when they change; without it, a certificate is made at the start",
		}.text(func(c *Config) *string { return &c.MetricsCertDir }),
		setting{flag: "health-probe-port", env: "HEALTH_PROBE_PORT", chart: "controller.healthProbe.port", preset: "8081",
			meaning: "TCP port of /healthz and /readyz; 0 serves none",
		}.integer(func(c *Config) *int { return &c.HealthProbePort }, 0, maxPort),
		setting{flag: "enable-profiling", env: "ENABLE_PROFILING", preset: "false",
			meaning: "serve /debug/pprof on the metrics port; unless metrics-secure is set, to any client that can reach the port",
		}.boolean(func(c *Config) *bool { return &c.EnableProfiling }),
	}
}

func replicas() []setting {
	return []setting{
		setting{flag: "disable-leader-election", env: "DISABLE_LEADER_ELECTION", preset: "false",
			meaning: "run the controllers without holding a lease; only ever run one such process",
		}.boolean(func(c *Config) *bool { return &c.DisableLeaderElection }),
		setting{flag: "leader-election-name", env: "LEADER_ELECTION_NAME", preset: "karpenter-leader-election",
			meaning: "the lease that the leader holds; the chart's Role allows this name only",
		}.filled(func(c *Config) *string { return &c.LeaderElectionName }),
		setting{flag: "leader-election-namespace", env: "LEADER_ELECTION_NAMESPACE", values: "a namespace",
			meaning: "where the lease is; without it SYSTEM_NAMESPACE, the pod's, or kube-system outside of a cluster",
		}.text(func(c *Config) *string { return &c.LeaderElectionNamespace }),
		setting{flag: "disable-controller-warmup", env: "DISABLE_CONTROLLER_WARMUP", preset: "true",
			meaning: "do not fill the queues of replicas that do not lead; false fills them, so that a replica takes over sooner. Caches are always full",
		}.boolean(func(c *Config) *bool { return &c.DisableControllerWarmup }),
		setting{flag: "disable-cluster-state-observability", env: "DISABLE_CLUSTER_STATE_OBSERVABILITY", chart: "settings.disableClusterStateObservability", preset: "false",
			meaning: "leave out the metrics of single pods, nodes, node pools and conditions, some 50 samples a node, and those of offerings, some 23,000 with AWS",
		}.boolean(func(c *Config) *bool { return &c.DisableClusterStateObservability }),
	}
}

func machine() []setting {
	const defaultCPU = 1000
	return []setting{
		setting{flag: "memory-limit", env: "MEMORY_LIMIT", chart: "controller.resources.limits.memory", preset: "-1",
			meaning: "memory that the process can use; the Go runtime collects garbage to stay below 90% of it. 0 or less means no limit",
		}.bytes(func(c *Config) *int64 { return &c.MemoryLimit }),
		setting{flag: "cpu-requests", env: "CPU_REQUESTS", chart: "controller.resources.requests.cpu",
			meaning: "CPU that the process requests; decides how many objects are handled in parallel. 0 or less means the default",
		}.millicores(func(c *Config) *int { return &c.CPURequests }, defaultCPU),
	}
}

func logs() []setting {
	return []setting{
		setting{flag: "log-level", env: "LOG_LEVEL", chart: "logLevel", preset: "info",
			meaning: "lowest level that is logged",
		}.level(func(c *Config) *string { return &c.LogLevel }),
		setting{flag: "log-output-paths", env: "LOG_OUTPUT_PATHS", chart: "logOutputPaths", preset: "stdout",
			values:  "`stdout`, `stderr`, files; separated by commas",
			meaning: "where logs are written, one JSON object per line",
		}.list(func(c *Config) *[]string { return &c.LogOutputPaths }),
		setting{flag: "log-error-output-paths", env: "LOG_ERROR_OUTPUT_PATHS", chart: "logErrorOutputPaths", preset: "stderr",
			values:  "as log-output-paths",
			meaning: "where errors of logging itself are written",
		}.list(func(c *Config) *[]string { return &c.LogErrorOutputPaths }),
	}
}

// level accepts an empty value as info.
func (s setting) level(field func(*Config) *string) setting {
	s = s.oneOf(field, "debug", "info", "error")
	named := s.set
	s.set = func(c *Config, value string) error {
		if value == "" {
			value = s.preset
		}
		return named(c, value)
	}
	return s
}

func decisions() []setting {
	return []setting{
		setting{flag: "batch-max-duration", env: "BATCH_MAX_DURATION", chart: "settings.batchMaxDuration", preset: "10s",
			meaning: "longest wait for more pods after the first of a batch",
		}.duration(func(c *Config) *time.Duration { return &c.BatchMaxDuration }),
		setting{flag: "batch-idle-duration", env: "BATCH_IDLE_DURATION", chart: "settings.batchIdleDuration", preset: "1s",
			meaning: "a batch is complete when no new pod has arrived for this long; a longer time plans more pods together, and starts later",
		}.duration(func(c *Config) *time.Duration { return &c.BatchIdleDuration }),
		setting{flag: "nominate-pods", env: "NOMINATE_PODS", chart: "settings.nominatePods", preset: "false",
			meaning: "write the planned node to status.nominatedNodeName of pods, which the scheduler prefers; needs patch on pods/status, and has no effect before Kubernetes 1.35",
		}.boolean(func(c *Config) *bool { return &c.NominatePods }),
		setting{flag: "provisioning-requests", env: "PROVISIONING_REQUESTS", chart: "settings.provisioningRequests", preset: "false",
			meaning: "launch capacity for [ProvisioningRequests](groups.md#use-kueue) of Kueue; without it, they have no effect and no status",
		}.boolean(func(c *Config) *bool { return &c.ProvisioningRequests }),
		setting{flag: "eviction-requests", env: "EVICTION_REQUESTS", chart: "settings.evictionRequests", preset: "false",
			meaning: "drain nodes by [EvictionRequests](concepts.md#drain-nodes-by-evictionrequests) where the API server serves them; needs get, create and patch on evictionrequests",
		}.boolean(func(c *Config) *bool { return &c.EvictionRequests }),
		setting{flag: "surge-first-timeout", env: "SURGE_FIRST_TIMEOUT", chart: "settings.surgeFirstTimeout", preset: "0s",
			meaning: "how long a drain waits for the replacement of a pod whose Deployment has one replica and the annotation karpenter.sh/surge-first in its pod template; the drain restarts the rollout, and evicts the pod after this time; `0s` = it evicts the pod at once. Needs get and patch on deployments",
		}.duration(func(c *Config) *time.Duration { return &c.SurgeFirstTimeout }),
		setting{flag: "preference-policy", env: "PREFERENCE_POLICY", chart: "settings.preferencePolicy", preset: "Respect",
			meaning: "whether preferences of pods (affinity, spread with ScheduleAnyway) influence which nodes are launched",
		}.oneOf(func(c *Config) *string { return &c.PreferencePolicy }, "Respect", "Ignore"),
		setting{flag: "min-values-policy", env: "MIN_VALUES_POLICY", chart: "settings.minValuesPolicy", preset: "Strict",
			meaning: "what happens when minValues of a requirement cannot be met: the pods stay pending (Strict), or fewer values are enough (BestEffort)",
		}.oneOf(func(c *Config) *string { return &c.MinValuesPolicy }, "Strict", "BestEffort"),
		setting{flag: "ignore-dra-requests", env: "IGNORE_DRA_REQUESTS", chart: "settings.ignoreDRARequests", preset: "false",
			meaning: "plan no nodes for pods with ResourceClaims, as if the API server did not serve resource.k8s.io/v1",
		}.boolean(func(c *Config) *bool { return &c.IgnoreDRARequests }),
		setting{flag: "legacy-node-repair", env: "LEGACY_NODE_REPAIR", chart: "settings.legacyNodeRepair", preset: "false",
			meaning: "with the gate NodeRepair, repair nodes as versions before 1.15 did: by force, outside of budgets, without launching a replacement first",
		}.boolean(func(c *Config) *bool { return &c.LegacyNodeRepair }),
		setting{flag: "feature-gates", env: "FEATURE_GATES", chart: "settings.featureGates",
			meaning: "which features are on; gates not named keep their default, unknown names have no effect and are logged",
		}.gates(features()),
		setting{flag: "capacity-buffer-namespace-limits", env: "CAPACITY_BUFFER_NAMESPACE_LIMITS", chart: "settings.capacityBufferNamespaceLimits",
			preset:  "cpu=1000,memory=4Ti,pods=10000",
			meaning: "what the pods of all CapacityBuffers of one namespace may request together, and what those of all its ProvisioningRequests may; resources that are not named are not limited",
		}.resources(func(c *Config) *corev1.ResourceList { return &c.CapacityBufferNamespaceLimits }),
		setting{flag: "additional-node-price", env: "ADDITIONAL_NODE_PRICE", chart: "settings.additionalNodePrice", preset: "0",
			meaning: "what each node costs besides its instance, volumes and addresses, such as a monitoring agent that is billed per node; the annotation karpenter.sh/additional-node-price of a NodePool overrides it",
		}.price(func(c *Config) *model.Price { return &c.AdditionalNodePrice }),
		setting{flag: "additional-vcpu-price", env: "ADDITIONAL_VCPU_PRICE", chart: "settings.additionalVCPUPrice", preset: "0",
			meaning: "the same for each vCPU of a node, such as a license that is billed per core; the annotation karpenter.sh/additional-vcpu-price of a NodePool overrides it",
		}.price(func(c *Config) *model.Price { return &c.AdditionalVCPUPrice }),
		setting{flag: "preference-premium", env: "PREFERENCE_PREMIUM", chart: "settings.preferencePremium", preset: "0.05",
			meaning: "how much more a plan may cost if it honors what pods prefer, as a share of its cost without: 0.05 is 5%; the annotation karpenter.sh/preference-premium of a NodePool overrides it",
		}.fraction(func(c *Config) *float64 { return &c.PreferencePremium }),
		setting{flag: "preference-allowance", env: "PREFERENCE_ALLOWANCE", chart: "settings.preferenceAllowance", preset: "0.05",
			meaning: "how much more a plan may cost in any case if pods prefer to be spread over zones or nodes, however small its cost is; the annotation karpenter.sh/preference-allowance of a NodePool overrides it",
		}.price(func(c *Config) *model.Price { return &c.PreferenceAllowance }),
		setting{flag: "max-spot-pool-share", env: "MAX_SPOT_POOL_SHARE", chart: "settings.maxSpotPoolShare", preset: "0.5",
			meaning: "the largest share of a workload's pods that is to run in one spot pool, which is an instance type in a zone; new nodes are launched in others as long as that costs no more than `--preference-allowance`, and 1 allows any share; the annotation karpenter.sh/max-spot-pool-share of a NodePool overrides it",
		}.fraction(func(c *Config) *float64 { return &c.MaxSpotPoolShare }),
		setting{flag: "node-count-premium", env: "NODE_COUNT_PREMIUM", chart: "settings.nodeCountPremium", preset: "0.01",
			meaning: "how much more the new nodes of a plan may cost if they are fewer, as a share of their cost: 0.01 is 1%, and with 0 the cheapest nodes are launched, however many",
		}.fraction(func(c *Config) *float64 { return &c.NodeCountPremium }),
		setting{flag: "consolidation-payback-time", env: "CONSOLIDATION_PAYBACK_TIME", chart: "settings.consolidationPaybackTime", preset: "12h",
			meaning: "time within which a consolidation must save the price of moving pods and launching nodes. Moving all pods of a NodePool has the price of the NodePool for one hour; `0s` allows any saving; the annotation karpenter.sh/consolidation-payback-time of a NodePool overrides it",
		}.duration(func(c *Config) *time.Duration { return &c.ConsolidationPaybackTime }),
		setting{flag: "consolidation-savings-threshold", env: "CONSOLIDATION_SAVINGS_THRESHOLD", chart: "settings.consolidationSavingsThreshold", preset: "0.1",
			meaning: "smallest share of the price of nodes that replacing them must save; the annotation karpenter.sh/consolidation-savings-threshold of a NodePool overrides it",
		}.fraction(func(c *Config) *float64 { return &c.ConsolidationSavingsThreshold }),
		setting{flag: "rebalance-premium", env: "REBALANCE_PREMIUM", chart: "settings.rebalancePremium",
			meaning: "replace spot nodes for which AWS sends a rebalance recommendation, if their pods find places in spot pools without one, and how much more these may cost, as a share of the node's price: 0.05 is 5%; without it recommendations are events only, as upstream. Needs an interruption queue",
		}.fractionOrOff(func(c *Config) **float64 { return &c.RebalancePremium }),
		setting{flag: "scheduler-config", env: "SCHEDULER_CONFIG", chart: "settings.schedulerConfig",
			meaning: "podTopologySpread.defaultConstraints of the cluster's scheduler, so that Karpenter plans the same spread",
		}.schedulerConfig(),
	}
}
