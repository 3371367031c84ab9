package config

import (
	"math"
	"time"
)

const maxPort = 65535

// settings returns everything the process can be told, in the order of the
// help text.
func settings() []setting {
	var all []setting
	for _, group := range [][]setting{cluster(), replicas(), machine(), logs(), decisions(), clouds(), amazon()} {
		all = append(all, group...)
	}
	return all
}

func cluster() []setting {
	return []setting{
		setting{flag: "kubeconfig",
			meaning: "file that says where the cluster is; without it KUBECONFIG, the pod's service account and ~/.kube/config are tried",
		}.text(func(c *Config) *string { return &c.Kubeconfig }),
		setting{env: "SYSTEM_NAMESPACE",
			meaning: "namespace the process was installed in",
		}.text(func(c *Config) *string { return &c.SystemNamespace }),
		setting{flag: "karpenter-service", env: "KARPENTER_SERVICE",
			meaning: "accepted for compatibility, has no effect",
		}.text(func(c *Config) *string { return &c.KarpenterService }),
		setting{flag: "kube-client-qps", env: "KUBE_CLIENT_QPS", preset: "200",
			meaning: "requests per second to the API server",
		}.integer(func(c *Config) *int { return &c.KubeClientQPS }, 1, math.MaxInt32),
		setting{flag: "kube-client-burst", env: "KUBE_CLIENT_BURST", preset: "300",
			meaning: "requests to the API server at once",
		}.integer(func(c *Config) *int { return &c.KubeClientBurst }, 1, math.MaxInt32),
		setting{flag: "metrics-port", env: "METRICS_PORT", preset: "8080",
			meaning: "port of /metrics; 0 for none",
		}.integer(func(c *Config) *int { return &c.MetricsPort }, 0, maxPort),
		setting{flag: "health-probe-port", env: "HEALTH_PROBE_PORT", preset: "8081",
			meaning: "port of /healthz and /readyz; 0 for none",
		}.integer(func(c *Config) *int { return &c.HealthProbePort }, 0, maxPort),
		setting{flag: "enable-profiling", env: "ENABLE_PROFILING", preset: "false",
			meaning: "serve /debug/pprof on the metrics port",
		}.boolean(func(c *Config) *bool { return &c.EnableProfiling }),
		setting{flag: "explain-bind-address", env: "EXPLAIN_BIND_ADDRESS",
			meaning: "host:port of a loopback address that answers karpenter explain and karpenter snapshot, to users the API server lets; without it, nothing does",
		}.loopback(func(c *Config) *string { return &c.ExplainBindAddress }),
	}
}

func replicas() []setting {
	return []setting{
		setting{flag: "disable-leader-election", env: "DISABLE_LEADER_ELECTION", preset: "false",
			meaning: "run the controllers without holding a lease; only ever run one such process",
		}.boolean(func(c *Config) *bool { return &c.DisableLeaderElection }),
		setting{flag: "leader-election-name", env: "LEADER_ELECTION_NAME", preset: "karpenter-leader-election",
			meaning: "name of the lease",
		}.filled(func(c *Config) *string { return &c.LeaderElectionName }),
		setting{flag: "leader-election-namespace", env: "LEADER_ELECTION_NAMESPACE",
			meaning: "namespace of the lease; without it SYSTEM_NAMESPACE, the pod's, or kube-system outside of a cluster",
		}.text(func(c *Config) *string { return &c.LeaderElectionNamespace }),
		setting{flag: "disable-controller-warmup", env: "DISABLE_CONTROLLER_WARMUP", preset: "true",
			meaning: "leave replicas that do not lead idle instead of filling their queues",
		}.boolean(func(c *Config) *bool { return &c.DisableControllerWarmup }),
		setting{flag: "disable-cluster-state-observability", env: "DISABLE_CLUSTER_STATE_OBSERVABILITY", preset: "false",
			meaning: "leave out the metrics about single pods, nodes and node pools",
		}.boolean(func(c *Config) *bool { return &c.DisableClusterStateObservability }),
	}
}

func machine() []setting {
	const defaultCPU = 1000
	return []setting{
		setting{flag: "memory-limit", env: "MEMORY_LIMIT", preset: "-1",
			meaning: "bytes the process may use, the Go runtime keeps to 90 % of it; not positive for no limit",
		}.bytes(func(c *Config) *int64 { return &c.MemoryLimit }),
		setting{flag: "cpu-requests", env: "CPU_REQUESTS",
			meaning: "millicores the process was given, decides how much is done in parallel; not positive for the default",
		}.millicores(func(c *Config) *int { return &c.CPURequests }, defaultCPU),
	}
}

func logs() []setting {
	return []setting{
		setting{flag: "log-level", env: "LOG_LEVEL", preset: "info",
			meaning: "debug, info or error",
		}.level(func(c *Config) *string { return &c.LogLevel }),
		setting{flag: "log-output-paths", env: "LOG_OUTPUT_PATHS", preset: "stdout",
			meaning: "files, stdout or stderr, separated by commas",
		}.list(func(c *Config) *[]string { return &c.LogOutputPaths }),
		setting{flag: "log-error-output-paths", env: "LOG_ERROR_OUTPUT_PATHS", preset: "stderr",
			meaning: "where errors of logging itself go, as log-output-paths",
		}.list(func(c *Config) *[]string { return &c.LogErrorOutputPaths }),
	}
}

// level takes nothing for info.
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
		setting{flag: "batch-max-duration", env: "BATCH_MAX_DURATION", preset: "10s",
			meaning: "longest wait for more pods after the first of a batch",
		}.duration(func(c *Config) *time.Duration { return &c.BatchMaxDuration }),
		setting{flag: "batch-idle-duration", env: "BATCH_IDLE_DURATION", preset: "1s",
			meaning: "longest wait for more pods after the latest of a batch",
		}.duration(func(c *Config) *time.Duration { return &c.BatchIdleDuration }),
		setting{flag: "nominate-pods", env: "NOMINATE_PODS", preset: "true",
			meaning: "tell the scheduler where pods are planned, in status.nominatedNodeName; from Kubernetes 1.35 on",
		}.boolean(func(c *Config) *bool { return &c.NominatePods }),
		setting{flag: "preference-policy", env: "PREFERENCE_POLICY", preset: "Respect",
			meaning: "Respect or Ignore what pods prefer",
		}.oneOf(func(c *Config) *string { return &c.PreferencePolicy }, "Respect", "Ignore"),
		setting{flag: "min-values-policy", env: "MIN_VALUES_POLICY", preset: "Strict",
			meaning: "Strict or BestEffort about the minValues of requirements",
		}.oneOf(func(c *Config) *string { return &c.MinValuesPolicy }, "Strict", "BestEffort"),
		setting{flag: "ignore-dra-requests", env: "IGNORE_DRA_REQUESTS", preset: "true",
			meaning: "refuse pods with resource claims",
		}.boolean(func(c *Config) *bool { return &c.IgnoreDRARequests }),
		setting{flag: "feature-gates", env: "FEATURE_GATES", preset: defaultGates,
			meaning: "Name=true or Name=false, separated by commas; gates not named keep their default",
		}.gates(func(c *Config) { c.Gates = Gates{ReservedCapacity: true} }, func(c *Config, name string) *bool { return c.Gates.gate(name) }),
		setting{flag: "scheduler-config", env: "SCHEDULER_CONFIG",
			meaning: "YAML or JSON with podTopologySpread.defaultConstraints",
		}.schedulerConfig(),
	}
}

func clouds() []setting {
	return []setting{
		setting{flag: "cloud-provider", env: "CLOUD_PROVIDER", preset: CloudAWS,
			meaning: "where machines come from: aws, or kwok for none at all",
		}.oneOf(func(c *Config) *string { return &c.CloudProvider }, CloudAWS, CloudKWOK),
		setting{flag: "instance-types-file-path", env: "INSTANCE_TYPES_FILE_PATH",
			meaning: "instance types file of the KWOK provider; without it, the types it generates",
		}.text(func(c *Config) *string { return &c.InstanceTypesFilePath }),
	}
}
