// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/model"
)

// environment names the cluster, as every environment must, and the pairs.
func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		if name == "CLUSTER_NAME" && !ok {
			return "demo", true
		}
		return value, ok
	}
}

// table is the Config of spec 50 §1 with nothing set.
func table() Config {
	return Config{
		MetricsPort: 8080, HealthProbePort: 8081, KubeClientQPS: 200, KubeClientBurst: 300,
		DisableControllerWarmup: true, LeaderElectionName: "karpenter-leader-election",
		MemoryLimit: -1, CPURequests: 1000,
		LogLevel: "info", LogOutputPaths: []string{"stdout"}, LogErrorOutputPaths: []string{"stderr"},
		BatchMaxDuration: 10 * time.Second, BatchIdleDuration: time.Second,
		PreferencePremium: 0.05, PreferenceAllowance: model.Dollar / 20, MaxSpotPoolShare: 0.5, NodeCountPremium: 0.01,
		PreferencePolicy: "Respect", MinValuesPolicy: "Strict",
		CapacityBufferNamespaceLimits: corev1.ResourceList{
			"cpu": resource.MustParse("1000"), "memory": resource.MustParse("4Ti"), "pods": resource.MustParse("10000"),
		},
		ConsolidationPaybackTime: 12 * time.Hour, ConsolidationSavingsThreshold: 0.1,
		Gates: Gates{ReservedCapacity: true}, CloudProvider: CloudAWS,
		ClusterName: "demo", VMMemoryOverheadPercent: 0.075,
		AWS:   AWS{AMIRefreshInterval: time.Minute, SubnetRefreshInterval: time.Minute, SecurityGroupRefreshInterval: time.Minute, DRANVIDIAGPU: true, DRAEFA: true},
		Azure: Azure{Mode: ModeVMs, AdminUser: "azureuser", NetworkDataplane: "cilium", NetworkPlugin: "azure", NetworkPluginMode: "overlay", Cloud: "AzurePublicCloud", BatchIdle: time.Second, BatchMost: 5 * time.Second, BatchItems: 50},
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want func(*Config)
	}{
		{"spec 50/1 nothing is set", nil, nil, func(*Config) {}},
		{"no limits", []string{"--capacity-buffer-namespace-limits=none"}, nil, func(c *Config) { c.CapacityBufferNamespaceLimits = nil }},
		{"preferences", []string{"--preference-premium=.2", "--preference-allowance", "1.5"}, map[string]string{"NODE_COUNT_PREMIUM": "0", "PREFERENCE_PREMIUM": "1"}, func(c *Config) {
			c.PreferencePremium, c.PreferenceAllowance, c.NodeCountPremium = 0.2, model.Dollar*3/2, 0
		}},
		{"spot pools", []string{"--max-spot-pool-share=1", "--rebalance-premium", "0.05"}, nil, func(c *Config) {
			premium := 0.05
			c.MaxSpotPoolShare, c.RebalancePremium = 1, &premium
		}},
		{"other limits", []string{"--capacity-buffer-namespace-limits=cpu=1, nvidia.com/gpu=8"}, nil, func(c *Config) {
			c.CapacityBufferNamespaceLimits = corev1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("8")}
		}},
		{"spec 50/2 variables", nil, map[string]string{
			"METRICS_PORT": "9000", "HEALTH_PROBE_PORT": "0", "KUBE_CLIENT_QPS": "10", "KUBE_CLIENT_BURST": "20",
			"ENABLE_PROFILING": "true", "DISABLE_CONTROLLER_WARMUP": "false", "DISABLE_LEADER_ELECTION": "true",
			"DISABLE_CLUSTER_STATE_OBSERVABILITY": "true", "LEADER_ELECTION_NAME": "lease", "LEADER_ELECTION_NAMESPACE": "ns",
			"MEMORY_LIMIT": "1000", "CPU_REQUESTS": "2500", "LOG_LEVEL": "debug", "LOG_OUTPUT_PATHS": "a,b", "LOG_ERROR_OUTPUT_PATHS": "c",
			"BATCH_MAX_DURATION": "1m", "BATCH_IDLE_DURATION": "50ms", "PREFERENCE_POLICY": "Ignore", "MIN_VALUES_POLICY": "BestEffort",
			"IGNORE_DRA_REQUESTS": "true", "FEATURE_GATES": "NodeRepair=true", "INSTANCE_TYPES_FILE_PATH": "/types.json",
			"SYSTEM_NAMESPACE": "system", "KARPENTER_SERVICE": "service", "NOMINATE_PODS": "true",
			"METRICS_SECURE": "true", "METRICS_CERT_DIR": "/tls",
		}, func(c *Config) {
			c.MetricsSecure, c.MetricsCertDir = true, "/tls"
			c.MetricsPort, c.HealthProbePort, c.KubeClientQPS, c.KubeClientBurst = 9000, 0, 10, 20
			c.EnableProfiling, c.DisableControllerWarmup, c.DisableLeaderElection = true, false, true
			c.DisableClusterStateObservability, c.LeaderElectionName, c.LeaderElectionNamespace = true, "lease", "ns"
			c.MemoryLimit, c.CPURequests, c.LogLevel = 1000, 2500, "debug"
			c.LogOutputPaths, c.LogErrorOutputPaths = []string{"a", "b"}, []string{"c"}
			c.BatchMaxDuration, c.BatchIdleDuration = time.Minute, 50*time.Millisecond
			c.PreferencePolicy, c.MinValuesPolicy, c.IgnoreDRARequests = "Ignore", "BestEffort", true
			c.Gates.NodeRepair, c.InstanceTypesFilePath = true, "/types.json"
			c.NominatePods = true
			c.SystemNamespace, c.KarpenterService = "system", "service"
		}},
		{"spec 50/2 a flag beats its variable", []string{"--metrics-port=1", "-log-level", "error"},
			map[string]string{"METRICS_PORT": "2", "LOG_LEVEL": "debug"},
			func(c *Config) { c.MetricsPort, c.LogLevel = 1, "error" }},
		{"spec 50/2 field by field", []string{"--metrics-port", "1"}, map[string]string{"HEALTH_PROBE_PORT": "2"},
			func(c *Config) { c.MetricsPort, c.HealthProbePort = 1, 2 }},
		{"a variable set to nothing is not set", nil, map[string]string{"METRICS_PORT": "", "LOG_OUTPUT_PATHS": ""}, func(*Config) {}},
		{"a flag overrides a variable that is useless", []string{"--metrics-port=1"}, map[string]string{"METRICS_PORT": "x"},
			func(c *Config) { c.MetricsPort = 1 }},
		{"a bare flag is true", []string{"--enable-profiling"}, nil, func(c *Config) { c.EnableProfiling = true }},
		{"a kubeconfig", []string{"--kubeconfig", "/k"}, map[string]string{"KUBECONFIG": "/other"}, func(c *Config) { c.Kubeconfig = "/k" }},
		{"spec 50/3 a subset of the gates", []string{"--feature-gates=NodeRepair=true"}, nil, func(c *Config) { c.Gates.NodeRepair = true }},
		{"spec 50/3 every gate", []string{"--feature-gates=SpotToSpotConsolidation=true,NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true,ReservedCapacity=false,NodeRepair=false"}, nil,
			func(c *Config) {
				c.Gates = Gates{SpotToSpotConsolidation: true, NodeOverlay: true, StaticCapacity: true, CapacityBuffer: true}
			}},
		{"spec 50/3 spec 45/1 spaces and unknown gates", []string{"--feature-gates=  Drift=true, SpotToSpotConsolidation\t= true ,,"}, nil,
			func(c *Config) {
				c.Gates.SpotToSpotConsolidation, c.UnknownGates = true, []string{"Drift"}
				c.Ignored = []string{"feature gate Drift is unknown"}
			}},
		{"spec 48/6 boolean variables", nil, map[string]string{"IGNORE_DRA_REQUESTS": "", "ENABLE_PROFILING": "True", "DISABLE_LEADER_ELECTION": "1",
			"ISOLATED_VPC": "t", "DISABLE_CONTROLLER_WARMUP": "F", "NOMINATE_PODS": "0", "EKS_CONTROL_PLANE": "yes"},
			func(c *Config) {
				c.EnableProfiling, c.DisableLeaderElection, c.AWS.IsolatedVPC = true, true, true
				c.DisableControllerWarmup, c.NominatePods = false, false
				c.Ignored = []string{`EKS_CONTROL_PLANE="yes" is neither true nor false: the default false applies`}
			}},
		{"spec 48/7 forms of gates", nil, map[string]string{"FEATURE_GATES": "NodeRepair = T , Foo=1,NodeOverlay=False,NodeOverlay=True"},
			func(c *Config) {
				c.Gates.NodeRepair, c.Gates.NodeOverlay = true, true
				c.UnknownGates, c.Ignored = []string{"Foo"}, []string{"feature gate Foo is unknown"}
			}},
		{"misspelled gate", nil, map[string]string{"FEATURE_GATES": "NodeRepare=true"}, func(c *Config) {
			c.UnknownGates, c.Ignored = []string{"NodeRepare"}, []string{"feature gate NodeRepare is unknown; did you mean NodeRepair?"}
		}},
		{"spec 48/8 security groups", []string{"--security-group-refresh-interval=1m"}, nil, func(*Config) {}},
		{"legacy repair without repair", []string{"--legacy-node-repair"}, nil, func(c *Config) {
			c.LegacyNodeRepair, c.Ignored = true, []string{"legacy-node-repair has no effect without the feature gate NodeRepair"}
		}},
		{"terminate first without repair", nil, map[string]string{"FEATURE_GATES": "TerminateFirstRepair=true"}, func(c *Config) {
			c.Gates.TerminateFirstRepair, c.Ignored = true, []string{"feature gate TerminateFirstRepair has no effect without NodeRepair"}
		}},
		{"spec 50/3 no gates", []string{"--feature-gates="}, nil, func(*Config) {}},
		{"spec 50/4 log level not given", []string{"--log-level="}, nil, func(*Config) {}},
		{"spec 50/4 log level debug", []string{"--log-level=debug"}, nil, func(c *Config) { c.LogLevel = "debug" }},
		{"spec 50/4 log level info", []string{"--log-level=info"}, nil, func(*Config) {}},
		{"spec 50/4 log level error", []string{"--log-level=error"}, nil, func(c *Config) { c.LogLevel = "error" }},
		{"an authority in lines", nil, map[string]string{"CLUSTER_CA_BUNDLE": "Y2\nE=\n"}, func(c *Config) { c.AWS.ClusterCABundle = "Y2E=" }},
		{"spec 50/5 no cpu", []string{"--cpu-requests=0"}, nil, func(*Config) {}},
		{"spec 50/5 less than no cpu", nil, map[string]string{"CPU_REQUESTS": "-50"}, func(*Config) {}},
		{"kwok needs no name of a cluster", []string{"--cloud-provider=kwok"}, map[string]string{"CLUSTER_NAME": ""},
			func(c *Config) { c.CloudProvider, c.ClusterName = CloudKWOK, "" }},
		{"spec 65/153 variables", nil, map[string]string{
			"CLUSTER_NAME": "prod", "CLUSTER_ENDPOINT": "https://k8s.example.com", "CLUSTER_CA_BUNDLE": "Y2E=", "ISOLATED_VPC": "true",
			"EKS_CONTROL_PLANE": "true", "VM_MEMORY_OVERHEAD_PERCENT": "0.1", "INTERRUPTION_QUEUE": "q", "RESERVED_ENIS": "1",
			"DISABLE_DRY_RUN": "true", "ENABLE_ZONAL_SHIFT": "true", "AMI_REFRESH_INTERVAL": "5m", "SUBNET_REFRESH_INTERVAL": "90s",
			"AWS_FEATURE_GATES": "NodeClassCEL=true,RebootForRepair=true", "SECURITY_GROUP_REFRESH_INTERVAL": "2m", "FEATURE_GATES": "NodeRepair=true",
		}, func(c *Config) {
			c.AWS = AWS{"Y2E=", true, true, "q", 1, true, true, 5 * time.Minute, 90 * time.Second, 2 * time.Minute, true, true, true, true}
			c.ClusterName, c.ClusterEndpoint, c.VMMemoryOverheadPercent = "prod", "https://k8s.example.com", 0.1
			c.Gates.NodeRepair = true
		}},
		{"spec 65/153 a flag beats its variable", []string{"--reserved-enis=2"}, map[string]string{"RESERVED_ENIS": "1"},
			func(c *Config) { c.AWS.ReservedENIs = 2 }},
		{"spec 65/153 unknown AWS gate", []string{"--aws-feature-gates=Other=true"}, nil,
			func(c *Config) {
				c.UnknownGates, c.Ignored = []string{"Other"}, []string{"feature gate Other is unknown"}
			}},
		{"what consolidation must save", []string{"--consolidation-payback-time=0s"}, map[string]string{"CONSOLIDATION_SAVINGS_THRESHOLD": "0.25"},
			func(c *Config) { c.ConsolidationPaybackTime, c.ConsolidationSavingsThreshold = 0, 0.25 }},
		{"spec 50/7 no scheduler config", []string{"--scheduler-config="}, nil, func(*Config) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := table()
			tc.want(&want)
			got, err := Parse(tc.args, environment(tc.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("what was parsed is not valid: %v", err)
			}
		})
	}
}

func TestInvalidSettings(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want string
	}{
		{"unknown flag", []string{"--nonsense"}, nil, "flag provided but not defined: -nonsense"},
		{"argument", []string{"now"}, nil, `argument "now": want flags only`},
		{"port", []string{"--metrics-port=x"}, nil, `--metrics-port: "x": want an integer from 0 to 65535`},
		{"port too large", []string{"--metrics-port=65536"}, nil, `--metrics-port: "65536": want an integer from 0 to 65535`},
		{"variable", nil, map[string]string{"METRICS_PORT": "x"}, `METRICS_PORT: "x": want an integer from 0 to 65535`},
		{"boolean", []string{"--enable-profiling=1"}, nil, `--enable-profiling: "1": want true or false`},
		{"spec 48/6 boolean flag", []string{"--ignore-dra-requests=0"}, nil, `--ignore-dra-requests: "0": want true or false`},
		{"spec 48/8 security groups", []string{"--security-group-refresh-interval=59s"}, nil,
			`--security-group-refresh-interval: "59s": security-group-refresh-interval must be at least 1m`},
		{"misspelled flag", []string{"--metric-port=1"}, nil, "flag provided but not defined: -metric-port; did you mean metrics-port?"},
		{"spec 48/7 unknown gate with another value", []string{"--feature-gates=Foo=maybe"}, nil, `--feature-gates: "Foo=maybe": gate "Foo": want true or false`},
		{"spec 48/7 gate alone", nil, map[string]string{"FEATURE_GATES": "NodeRepair"}, `FEATURE_GATES: "NodeRepair": gate "NodeRepair": want true or false`},
		{"spec 48/7 gate without value", []string{"--feature-gates=NodeRepair="}, nil, `--feature-gates: "NodeRepair=": gate "NodeRepair": want true or false`},
		{"duration", []string{"--batch-idle-duration=1"}, nil, `--batch-idle-duration: "1": want a duration that is not negative, such as 10s or 1m30s`},
		{"a resource without an amount", nil, map[string]string{"CAPACITY_BUFFER_NAMESPACE_LIMITS": "cpu=1,memory"}, `CAPACITY_BUFFER_NAMESPACE_LIMITS: "cpu=1,memory": want NAME=QUANTITY separated by commas, such as cpu=100,memory=400Gi, or none`},
		{"a resource of no amount", nil, map[string]string{"CAPACITY_BUFFER_NAMESPACE_LIMITS": "cpu=many"}, `CAPACITY_BUFFER_NAMESPACE_LIMITS: "cpu=many": resource cpu: invalid quantity "many": want a number with an optional suffix, such as 500m or 4Gi`},
		{"a negative resource", nil, map[string]string{"CAPACITY_BUFFER_NAMESPACE_LIMITS": "cpu=-1"}, `CAPACITY_BUFFER_NAMESPACE_LIMITS: "cpu=-1": resource cpu: -1 is negative`},
		{"negative duration", nil, map[string]string{"BATCH_MAX_DURATION": "-1s"}, `BATCH_MAX_DURATION: "-1s": want a duration that is not negative, such as 10s or 1m30s`},
		{"bytes", nil, map[string]string{"MEMORY_LIMIT": "1Gi"}, `MEMORY_LIMIT: "1Gi": want an integer, in bytes`},
		{"millicores", []string{"--cpu-requests=1.5"}, nil, `--cpu-requests: "1.5": want an integer, in millicores`},
		{"rate", []string{"--kube-client-qps=0"}, nil, `--kube-client-qps: "0": want an integer from 1 to 2147483647`},
		{"lease without a name", []string{"--leader-election-name="}, nil, `--leader-election-name: "": want a name`},
		{"paths", []string{"--log-output-paths=a,,b"}, nil, `--log-output-paths: "a,,b": want a list separated by commas, without empty entries`},
		{"gate without value", []string{"--feature-gates=StaticCapacity="}, nil, `--feature-gates: "StaticCapacity=": gate "StaticCapacity": want true or false`},
		{"unknown gate without value", nil, map[string]string{"FEATURE_GATES": "Foo"}, `FEATURE_GATES: "Foo": gate "Foo": want true or false`},
		{"spec 50/4 log level", []string{"--log-level=hello"}, nil, `--log-level: "hello": want one of debug, info, error`},
		{"spec 50/6 preference policy", []string{"--preference-policy=Maybe"}, nil, `--preference-policy: "Maybe": want one of Respect, Ignore`},
		{"spec 50/6 min values policy", nil, map[string]string{"MIN_VALUES_POLICY": "strict"}, `MIN_VALUES_POLICY: "strict": want one of Strict, BestEffort`},
		{"provider", []string{"--cloud-provider=gcp"}, nil, `--cloud-provider: "gcp": want one of aws, azure, kwok`},
		{"spec 65/153 no cluster name", nil, map[string]string{"CLUSTER_NAME": ""},
			"missing field, cluster-name: set --cluster-name or CLUSTER_NAME to the name of the EKS cluster"},
		{"spec 65/153 relative endpoint", []string{"--cluster-endpoint=k8s.example.com"}, nil,
			`--cluster-endpoint: "k8s.example.com": cluster endpoint URL is not valid: want a URL with scheme and host, such as https://example.com`},
		{"spec 65/153 overhead", nil, map[string]string{"VM_MEMORY_OVERHEAD_PERCENT": "-0.1"},
			`VM_MEMORY_OVERHEAD_PERCENT: "-0.1": vm-memory-overhead-percent cannot be negative`},
		{"share", []string{"--preference-premium=5%"}, nil, `--preference-premium: "5%": want a share of 1, a decimal from 0 to 1 such as 0.05`},
		{"share above 1", nil, map[string]string{"NODE_COUNT_PREMIUM": "1.5"}, `NODE_COUNT_PREMIUM: "1.5": want a share of 1, a decimal from 0 to 1 such as 0.05`},
		{"no overhead", nil, map[string]string{"VM_MEMORY_OVERHEAD_PERCENT": "7%"}, `VM_MEMORY_OVERHEAD_PERCENT: "7%": want a number, such as 0.075`},
		{"spec 65/153 interfaces", []string{"--reserved-enis=-1"}, nil, `--reserved-enis: "-1": want an integer from 0 to 2147483647`},
		{"spec 65/153 refreshes", []string{"--ami-refresh-interval=59s", "--subnet-refresh-interval=59s"}, nil,
			"--ami-refresh-interval: \"59s\": ami-refresh-interval must be at least 1m\n--subnet-refresh-interval: \"59s\": subnet-refresh-interval must be at least 1m"},
		{"certificate without TLS", nil, map[string]string{"METRICS_CERT_DIR": "/tls"},
			"--metrics-cert-dir: metrics are served without TLS: set --metrics-secure or METRICS_SECURE=true, too, or leave it out"},
		{"TLS of nothing", []string{"--metrics-secure", "--metrics-port=0"}, nil,
			"--metrics-secure: metrics are not served: set --metrics-port or METRICS_PORT to a port, or leave it out"},
		{"neither yes nor no", []string{"--metrics-secure=yes"}, nil, `--metrics-secure: "yes": want true or false`},
		{"authority", []string{"--cluster-ca-bundle=-----BEGIN"}, nil,
			`--cluster-ca-bundle: "-----BEGIN": want PEM in base64 on one line, as ` + "`base64 -w0 ca.crt`" + ` prints it: illegal base64 data at input byte 0`},
		{"one port for two", []string{"--metrics-port=9000"}, map[string]string{"HEALTH_PROBE_PORT": "9000"},
			"metrics-port and health-probe-port are both 9000: want two ports, or 0 for none"},
		{"every fault is named", []string{"--metrics-port=x"}, map[string]string{"LOG_LEVEL": "y"},
			"--metrics-port: \"x\": want an integer from 0 to 65535\nLOG_LEVEL: \"y\": want one of debug, info, error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(tc.args, environment(tc.env))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := Parse([]string{"--help"}, environment(nil)); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error of --help is %v", err)
	}
}

const wellSpread = `
podTopologySpread:
  defaultConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
  - {maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}
`

const wellSpreadJSON = `{"podTopologySpread":{"defaultConstraints":[
	{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"},
	{"maxSkew":2,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,"nodeTaintsPolicy":"Honor"}]}}`

// spec 50/7 spec 20/114: equal YAML and JSON, and one key with both values of
// whenUnsatisfiable.
func TestSchedulerConfig(t *testing.T) {
	three, honor := int32(3), corev1.NodeInclusionPolicyHonor
	want := &SchedulerConfig{PodTopologySpread: PodTopologySpread{DefaultConstraints: []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway},
		{MaxSkew: 2, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: &three, NodeTaintsPolicy: &honor},
	}}}
	for _, given := range []string{wellSpread, wellSpreadJSON} {
		got, err := Parse([]string{"--scheduler-config=" + given}, environment(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.SchedulerConfig); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// spec 20/114: what is wrong with default constraints stops the start.
func TestInvalidSchedulerConfig(t *testing.T) {
	const spread = "podTopologySpread: {defaultConstraints: [%]}"
	for _, tc := range []struct{ name, constraints, want string }{
		{"spec 50/7 unknown field", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, colour: red}", `unknown field "colour"`},
		{"spec 50/7 malformed", "{maxSkew: ", "yaml"},
		{"spec 50/7 maxSkew", "{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}", "defaultConstraints[0].maxSkew: 0: want 1 or more"},
		{"spec 50/7 no key", "{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}", `topologyKey: "": want a label key`},
		{"spec 50/7 invalid key", "{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: DoNotSchedule}", `topologyKey: "a b": want a label key`},
		{"spec 50/7 selector", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}", "labelSelector: not allowed"},
		{"spec 50/7 matchLabelKeys", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b]}", "matchLabelKeys: not allowed"},
		{"spec 50/7 twice", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}",
			`defaultConstraints[1]: topologyKey "a" with whenUnsatisfiable DoNotSchedule occurs twice`},
		{"spec 50/7 whenUnsatisfiable", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}", `whenUnsatisfiable: "Never": want DoNotSchedule or ScheduleAnyway`},
		{"minDomains", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}", "minDomains: 2: want 1 or more, with DoNotSchedule only"},
		{"policy", "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, nodeTaintsPolicy: Perhaps}", `nodeTaintsPolicy: "Perhaps": want Honor or Ignore`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(nil, environment(map[string]string{"SCHEDULER_CONFIG": strings.Replace(spread, "%", tc.constraints, 1)}))
			if err == nil || !strings.HasPrefix(err.Error(), "SCHEDULER_CONFIG: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want …%s", err, tc.want)
			}
		})
	}
}

func TestValidateNamesTheSetting(t *testing.T) {
	c := Default()
	c.MetricsPort, c.LogOutputPaths = -1, nil
	want := "--metrics-port: want an integer from 0 to 65535\n--log-output-paths: want a list separated by commas, without empty entries"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// Every setting is described to the user, and no name is used twice.
func TestUsageNamesEverySetting(t *testing.T) {
	var out bytes.Buffer
	if err := Usage(&out); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range settings() {
		for _, name := range []string{s.flag, s.env} {
			if name == "" {
				continue
			}
			if seen[name] {
				t.Errorf("%s is used twice", name)
			}
			if seen[name] = true; !strings.Contains(out.String(), name) {
				t.Errorf("usage does not mention %s", name)
			}
		}
		if s.meaning == "" || strings.HasSuffix(s.meaning, ".") {
			t.Errorf("%s: meaning %q", s.name(), s.meaning)
		}
	}
}

func FuzzSchedulerConfig(f *testing.F) {
	f.Add(wellSpread)
	f.Add(wellSpreadJSON)
	f.Fuzz(func(t *testing.T, given string) {
		c, err := Parse([]string{"--scheduler-config", given}, environment(nil))
		if err == nil && c.Validate() != nil {
			t.Errorf("%q is taken and then not valid", given)
		}
	})
}
