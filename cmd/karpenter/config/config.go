// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Config has all settings of the controller process. docs/settings.md describes
// the fields; the comments name units and defaults. The zero value is not
// valid: use Default or Parse.
type Config struct {
	// Kubeconfig is the file with the address of the cluster and credentials.
	// Default "": the files named by KUBECONFIG, else the service account of
	// the pod the process runs in, else ~/.kube/config.
	Kubeconfig string

	// KarpenterService is accepted and has no effect. Default "".
	KarpenterService string
	// SystemNamespace is the namespace the process was installed in. Default
	// "", not known.
	SystemNamespace string

	// MetricsPort serves /metrics; 0 serves none. Default 8080.
	MetricsPort int
	// MetricsSecure serves metrics over TLS, to users who may get the path
	// /metrics. Default false.
	MetricsSecure bool
	// MetricsCertDir is the folder with tls.crt and tls.key for metrics.
	// Default "": a self-signed certificate is created at the start.
	MetricsCertDir string
	// HealthProbePort serves /healthz and /readyz; 0 serves none. Default 8081.
	HealthProbePort int
	// EnableProfiling adds /debug/pprof to the metrics port. Default false.
	EnableProfiling bool

	// KubeClientQPS and KubeClientBurst limit the requests to the API server,
	// in requests per second and requests at once. Default 200 and 300.
	KubeClientQPS, KubeClientBurst int

	// DisableControllerWarmup leaves the queues of replicas that do not lead
	// empty; false has them filled. Default true.
	DisableControllerWarmup bool
	// DisableLeaderElection runs the controllers without holding the lease.
	// Default false.
	DisableLeaderElection bool
	// LeaderElectionName names the lease. Default "karpenter-leader-election".
	LeaderElectionName string
	// LeaderElectionNamespace holds the lease. Default "", SystemNamespace or
	// the namespace of the pod.
	LeaderElectionNamespace string
	// DisableClusterStateObservability leaves out the metrics about single
	// pods, nodes, node pools and offerings. Default false.
	DisableClusterStateObservability bool

	// MemoryLimit is the memory that the process may use, in bytes; the Go
	// runtime uses at most 90 % of it. Default -1, no limit.
	MemoryLimit int64
	// CPURequests is the CPU request of the process, in millicores; it sets the
	// parallelism. Default 1000, also for 0 and less.
	CPURequests int

	// LogLevel is debug, info or error. Default info.
	LogLevel string
	// LogOutputPaths and LogErrorOutputPaths are where logs and errors of
	// logging go: files, stdout, stderr. Default stdout and stderr.
	LogOutputPaths, LogErrorOutputPaths []string

	// BatchMaxDuration and BatchIdleDuration limit the wait for more pods,
	// counted from the first and from the latest pod of a batch. Default 10s
	// and 1s.
	BatchMaxDuration, BatchIdleDuration time.Duration

	// ProvisioningRequests launches capacity for ProvisioningRequests. Default
	// false.
	ProvisioningRequests bool

	// NominatePods writes the planned node into the status of pods, if the API
	// server is new enough. With thousands of pods it slows the scheduler down.
	// It needs the right to patch pods/status. Default false.
	NominatePods bool

	// EvictionRequests drains nodes by EvictionRequests, if the API server serves
	// them. Default false.
	EvictionRequests bool

	// SurgeFirstTimeout is how long a pod with the annotation karpenter.sh/surge-first
	// waits for its replacement before it is evicted; 0 = it is evicted at once. It
	// needs the rights to get and patch Deployments. Default 0.
	SurgeFirstTimeout time.Duration

	// PreferencePolicy is Respect or Ignore. Default Respect.
	PreferencePolicy string
	// MinValuesPolicy is Strict or BestEffort. Default Strict.
	MinValuesPolicy string
	// IgnoreDRARequests rejects pods with resource claims. Default false. They
	// are always rejected if the API server does not serve resource.k8s.io/v1.
	IgnoreDRARequests bool
	// Gates are the feature gates. Default: ReservedCapacity only.
	Gates Gates
	// LegacyNodeRepair repairs nodes as versions before 1.15 did: by force,
	// outside of budgets, without replacements first. Default false.
	LegacyNodeRepair bool
	// UnknownGates are the unknown names in the feature gates.
	UnknownGates []string
	// Ignored lists the settings that were accepted and have no effect, as
	// sentences without a full stop.
	Ignored []string
	// CapacityBufferNamespaceLimits are what the pods of all CapacityBuffers of
	// one namespace may request together. Nil means no limit. Default cpu 1000,
	// memory 4Ti, pods 10000.
	CapacityBufferNamespaceLimits corev1.ResourceList
	// AdditionalNodePrice and AdditionalVCPUPrice are added to the price of each
	// node, per hour: for the node, and for each of its vCPUs. Default 0.
	AdditionalNodePrice, AdditionalVCPUPrice model.Price
	// PreferencePremium and PreferenceAllowance are how much more a plan may cost
	// if it honors preferences: as a share of what it costs without them, and in
	// dollars per hour for pods that prefer to be spread. Default 0.05 and 0.05.
	PreferencePremium   float64
	PreferenceAllowance model.Price
	// MaxSpotPoolShare is the largest share of a workload's pods that is to run in
	// one spot pool; 1 = any. Default 0.5.
	MaxSpotPoolShare float64
	// RebalancePremium is how much more it may cost to replace a spot node for which
	// AWS recommends that, as a share of its price. Default nil: none is replaced.
	RebalancePremium *float64
	// NodeCountPremium is how much more the new nodes of a plan may cost if they
	// are fewer, as a share of their cost. Default 0.01.
	NodeCountPremium float64
	// ConsolidationPaybackTime is the time within which consolidation must save
	// the cost of what it disrupts. Default 12 hours.
	ConsolidationPaybackTime time.Duration
	// ConsolidationSavingsThreshold is the minimum share of the cost of nodes
	// that a replacement must save. Default 0.1.
	ConsolidationSavingsThreshold float64
	// SchedulerConfig holds the cluster's default topology spread. Default nil.
	SchedulerConfig *SchedulerConfig

	// CloudProvider is CloudAWS, CloudAzure or CloudKWOK. Default CloudAWS.
	CloudProvider string
	// ClusterName is the name of the EKS or AKS cluster; it tags all resources
	// that Karpenter creates. Required with AWS and Azure.
	ClusterName string
	// ClusterEndpoint is the URL of the API server for nodes. Default "", the
	// cloud is asked.
	ClusterEndpoint string
	// VMMemoryOverheadPercent is the share of memory, 0.075 for 7.5 %, that
	// nodes do not see. Default 0.075.
	VMMemoryOverheadPercent float64
	// AWS and Azure are the settings of their providers.
	AWS   AWS
	Azure Azure
	// InstanceTypesFilePath is the instance types file of the KWOK provider.
	// Default "", the types it generates.
	InstanceTypesFilePath string
}

// Default returns the Config of the KWOK provider without further arguments and
// without environment.
func Default() Config {
	c, err := Parse([]string{"--cloud-provider", CloudKWOK}, func(string) (string, bool) { return "", false })
	if err != nil {
		panic("config: the defaults are not valid: " + err.Error())
	}
	return c
}

// Parse reads the arguments, without the name of the program, and those
// variables of the environment that no argument overrides. The error names
// every setting that cannot be used, the value, and what is allowed; it is
// flag.ErrHelp when the arguments ask for help.
func Parse(args []string, env func(string) (string, bool)) (Config, error) {
	all := settings()
	given := make([]text, len(all))
	flags := flag.NewFlagSet("karpenter", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for i, s := range all {
		given[i].isBool = s.isBool
		if s.flag != "" {
			flags.Var(&given[i], s.flag, s.meaning)
		}
	}
	if err := flags.Parse(args); err != nil {
		return Config{}, undefined(err, all)
	}
	if flags.NArg() > 0 {
		return Config{}, fmt.Errorf("argument %q: want flags only", flags.Arg(0))
	}
	var c Config
	var failures []error
	for i, s := range all {
		name, value := s.value(given[i], env)
		if s.isBool && !given[i].isSet && value != s.preset {
			value = c.lenient(s, value)
		}
		if err := s.set(&c, value); err != nil {
			failures = append(failures, fmt.Errorf("%s: %q: %w", name, value, err))
		}
	}
	c.ineffective()
	return c, errors.Join(append(failures, c.complete())...)
}

// lenient reads a boolean variable in all the forms that upstream reads. A value
// that upstream cannot read means the default, as it does there.
func (c *Config) lenient(s setting, value string) string {
	b, err := strconv.ParseBool(value)
	if err != nil {
		c.ignore(fmt.Sprintf("%s=%q is neither true nor false: the default %s applies", s.env, value, s.preset))
		return s.preset
	}
	return strconv.FormatBool(b)
}

func (c *Config) ignore(what string) { c.Ignored = append(c.Ignored, what) }

// value returns what the setting is set to, and by what.
func (s setting) value(given text, env func(string) (string, bool)) (name, value string) {
	if given.isSet {
		return "--" + s.flag, given.value
	}
	for _, variable := range []string{s.env, s.also} {
		if value, ok := env(variable); variable != "" && ok && (value != "" || s.nothing) {
			return variable, value
		}
	}
	return "default of --" + s.flag, s.preset
}

// Validate checks a Config that was not made by Parse.
func (c *Config) Validate() error {
	var failures []error
	for _, s := range settings() {
		if err := s.check(c); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.name(), err))
		}
	}
	return errors.Join(append(failures, c.complete())...)
}

// complete returns an error for settings that are missing or exclude each
// other.
func (c *Config) complete() error { return errors.Join(c.scraped(), c.clouded()) }

// scraped returns an error for invalid combinations of the settings of metrics.
func (c *Config) scraped() error {
	switch {
	case c.MetricsPort != 0 && c.MetricsPort == c.HealthProbePort:
		return fmt.Errorf("metrics-port and health-probe-port are both %d: want two ports, or 0 for none", c.MetricsPort)
	case c.MetricsCertDir != "" && !c.MetricsSecure:
		return errors.New("--metrics-cert-dir: metrics are served without TLS: set --metrics-secure or METRICS_SECURE=true, too, or leave it out")
	case c.MetricsSecure && c.MetricsPort == 0:
		return errors.New("--metrics-secure: metrics are not served: set --metrics-port or METRICS_PORT to a port, or leave it out")
	}
	return nil
}

// text is a flag.Value that accepts any text, so that flags and variables are
// validated by the same code.
type text struct {
	value         string
	isSet, isBool bool
}

func (t *text) Set(value string) error {
	t.value, t.isSet = value, true
	return nil
}

func (t *text) String() string {
	if t == nil {
		return ""
	}
	return t.value
}

// IsBoolFlag lets a flag without a value mean true.
func (t *text) IsBoolFlag() bool { return t.isBool }
