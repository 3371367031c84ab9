// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const nodeadmVersion = "node.eks.aws/v1alpha1"

// nodeConfig is what of nodeadm's NodeConfig makes a difference here.
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		Kubelet struct {
			Config struct {
				MaxPods            *int64            `json:"maxPods"`
				PodsPerCore        *int64            `json:"podsPerCore"`
				KubeReserved       map[string]string `json:"kubeReserved"`
				SystemReserved     map[string]string `json:"systemReserved"`
				EvictionHard       map[string]string `json:"evictionHard"`
				RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
			} `json:"config"`
			Flags []string `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// readNodeConfig merges NodeConfigs as nodeadm does: the later one wins, of maps
// key by key; lists are replaced, flags added.
func (s *Settings) readNodeConfig(text string) error {
	documents := utilyaml.NewYAMLReader(newLineReader(text))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("NodeConfig: %w", err)
		}
		var c nodeConfig
		if err := yaml.Unmarshal(document, &c); err != nil {
			return fmt.Errorf("NodeConfig: %w", err)
		}
		if c.APIVersion != nodeadmVersion || c.Kind != "NodeConfig" {
			return fmt.Errorf("NodeConfig: apiVersion %q, kind %q: nodeadm knows %s, NodeConfig", c.APIVersion, c.Kind, nodeadmVersion)
		}
		if err := s.merge(&c); err != nil {
			return err
		}
	}
}

func (s *Settings) merge(c *nodeConfig) error {
	cluster, config := &c.Spec.Cluster, &c.Spec.Kubelet.Config
	overwrite(&s.Cluster, cluster.Name)
	overwrite(&s.Endpoint, cluster.APIServerEndpoint)
	overwrite(&s.CA, cluster.CertificateAuthority)
	if strategy := c.Spec.Instance.LocalStorage.Strategy; strategy != "" {
		s.RAID0 = strategy == "RAID0"
	}
	for _, n := range []struct {
		to   *int64
		from *int64
	}{{&s.MaxPods, config.MaxPods}, {&s.PodsPerCore, config.PodsPerCore}} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	s.KubeReserved = merged(s.KubeReserved, config.KubeReserved)
	s.SystemReserved = merged(s.SystemReserved, config.SystemReserved)
	s.EvictionHard = merged(s.EvictionHard, config.EvictionHard)
	if config.RegisterWithTaints != nil {
		s.Taints = config.RegisterWithTaints
	}
	var flags []string
	for _, line := range c.Spec.Kubelet.Flags {
		split, err := words(line)
		if err != nil {
			return fmt.Errorf("NodeConfig: kubelet flags: %w", err)
		}
		flags = append(flags, split...)
	}
	return s.readFlags(flags)
}

func overwrite(to *string, from string) {
	if from != "" {
		*to = from
	}
}

func merged(to, from map[string]string) map[string]string {
	if to == nil && from != nil {
		to = map[string]string{}
	}
	maps.Copy(to, from)
	return to
}

// readScript reads the call of AL2's bootstrap.sh out of a shell script. A
// script without one is for others.
func (s *Settings) readScript(text string) error {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "/etc/eks/bootstrap.sh ") {
			continue
		}
		arguments, err := words(line)
		if err != nil {
			return fmt.Errorf("arguments of bootstrap.sh: %w", err)
		}
		if err := s.readBootstrap(arguments[1:]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) readBootstrap(arguments []string) error {
	for len(arguments) > 0 {
		name := arguments[0]
		if !strings.HasPrefix(name, "--") {
			s.Cluster, arguments = name, arguments[1:]
			continue
		}
		if len(arguments) == 1 {
			return fmt.Errorf("bootstrap.sh: %s has no value", name)
		}
		value := arguments[1]
		arguments = arguments[2:]
		switch name {
		case "--apiserver-endpoint":
			s.Endpoint = value
		case "--b64-cluster-ca":
			s.CA = value
		case "--local-disks":
			s.RAID0 = value == "raid0"
		case "--kubelet-extra-args":
			flags, err := words(value)
			if err == nil {
				err = s.readFlags(flags)
			}
			if err != nil {
				return fmt.Errorf("bootstrap.sh: %s: %w", name, err)
			}
		}
	}
	return nil
}

// readPowerShell reads the call of Windows' Start-EKSBootstrap.ps1.
func (s *Settings) readPowerShell(text string) error {
	s.OS = "windows"
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "& $EKSBootstrapScriptFile ") {
			continue
		}
		arguments, err := words(strings.TrimPrefix(line, "& "))
		if err != nil {
			return fmt.Errorf("arguments of Start-EKSBootstrap.ps1: %w", err)
		}
		for i := 1; i+1 < len(arguments); i += 2 {
			value := arguments[i+1]
			switch arguments[i] {
			case "-EKSClusterName":
				s.Cluster = value
			case "-APIServerEndpoint":
				s.Endpoint = value
			case "-Base64ClusterCA":
				s.CA = value
			case "-KubeletExtraArgs":
				flags, err := words(value)
				if err == nil {
					err = s.readFlags(flags)
				}
				if err != nil {
					return fmt.Errorf("Start-EKSBootstrap.ps1: %w", err)
				}
			}
		}
	}
	return nil
}

// bottlerocket is what of its settings makes a difference here.
type bottlerocket struct {
	Settings struct {
		Kubernetes struct {
			ClusterName        string              `toml:"cluster-name"`
			APIServer          string              `toml:"api-server"`
			ClusterCertificate string              `toml:"cluster-certificate"`
			MaxPods            int64               `toml:"max-pods"`
			NodeLabels         map[string]string   `toml:"node-labels"`
			NodeTaints         map[string][]string `toml:"node-taints"`
			KubeReserved       map[string]string   `toml:"kube-reserved"`
			SystemReserved     map[string]string   `toml:"system-reserved"`
			EvictionHard       map[string]string   `toml:"eviction-hard"`
		} `toml:"kubernetes"`
		BootstrapCommands map[string]struct {
			Commands [][]string `toml:"commands"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func (s *Settings) readBottlerocket(text string) error {
	var b bottlerocket
	if err := toml.Unmarshal([]byte(text), &b); err != nil {
		return fmt.Errorf("user data is neither MIME nor a script, a NodeConfig or Bottlerocket's TOML: %w", err)
	}
	k := &b.Settings.Kubernetes
	s.DataDevice = "/dev/xvdb"
	s.Cluster, s.Endpoint, s.CA, s.MaxPods = k.ClusterName, k.APIServer, k.ClusterCertificate, k.MaxPods
	maps.Copy(s.Labels, k.NodeLabels)
	for key, values := range k.NodeTaints {
		for _, text := range values {
			value, effect, ok := strings.Cut(text, ":")
			if !ok {
				return fmt.Errorf("Bottlerocket's settings: taint %s = %q: want VALUE:EFFECT", key, text)
			}
			s.Taints = append(s.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	s.KubeReserved, s.SystemReserved = k.KubeReserved, k.SystemReserved
	maps.Copy(s.EvictionHard, k.EvictionHard)
	for _, run := range b.Settings.BootstrapCommands {
		for _, command := range run.Commands {
			s.RAID0 = s.RAID0 || strings.HasPrefix(strings.Join(command, " "), "apiclient ephemeral-storage init")
		}
	}
	return nil
}

// readFlags reads the kubelet's flags; those of no consequence here are passed
// over.
func (s *Settings) readFlags(flags []string) error {
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		var err error
		switch name {
		case "--node-labels":
			_, err = pairs(s.Labels, value, "=")
		case "--register-with-taints":
			s.Taints, err = taints(value)
		case "--max-pods":
			s.MaxPods, err = strconv.ParseInt(value, 10, 64)
		case "--pods-per-core":
			s.PodsPerCore, err = strconv.ParseInt(value, 10, 64)
		case "--kube-reserved":
			s.KubeReserved, err = pairs(map[string]string{}, value, "=")
		case "--system-reserved":
			s.SystemReserved, err = pairs(map[string]string{}, value, "=")
		case "--eviction-hard":
			_, err = pairs(s.EvictionHard, value, "<")
		}
		if err != nil {
			return fmt.Errorf("the kubelet's flag %s: %w", flag, err)
		}
	}
	return nil
}

// pairs adds the pairs of a list to the map, and returns it.
func pairs(to map[string]string, list, separator string) (map[string]string, error) {
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, separator)
		if !ok {
			return nil, fmt.Errorf("%q: want KEY%sVALUE", pair, separator)
		}
		to[key] = value
	}
	return to, nil
}

func taints(list string) (all []corev1.Taint, err error) {
	for text := range strings.SplitSeq(list, ",") {
		rest, effect, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("taint %q: want KEY[=VALUE]:EFFECT", text)
		}
		key, value, _ := strings.Cut(rest, "=")
		all = append(all, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return all, nil
}
