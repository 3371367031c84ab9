// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Settings are what a machine joins the cluster with.
type Settings struct {
	OS                           string // linux, windows
	Cluster, Endpoint, CA        string // CA is base64
	Labels                       map[string]string
	Taints                       []corev1.Taint
	MaxPods, PodsPerCore         int64             // 0: not said
	KubeReserved, SystemReserved map[string]string // quantities by resource; nil: not said
	EvictionHard                 map[string]string // quantities or percentages by signal
	RAID0                        bool              // local disks hold pods and images
	DataDevice                   string            // holds them otherwise; "": the root
}

// Parse returns the node settings in decoded user data. It fails if the
// instance would not join: the user data names no cluster, or has settings that
// the kubelet rejects.
func Parse(text string) (*Settings, error) {
	s := &Settings{OS: "linux", Labels: map[string]string{}, EvictionHard: map[string]string{}}
	if err := s.read(text); err != nil {
		return nil, err
	}
	for _, missing := range []struct{ name, value string }{{"name", s.Cluster}, {"endpoint", s.Endpoint}, {"certificate authority", s.CA}} {
		if missing.value == "" {
			return nil, fmt.Errorf("the user data does not say the cluster's %s", missing.name)
		}
	}
	return s, refusedLabels(s.Labels)
}

func (s *Settings) read(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("there is no user data")
	case isMIME(text):
		return s.readMIME(text)
	case strings.HasPrefix(text, "<powershell>"):
		return s.readPowerShell(text)
	case strings.HasPrefix(text, "#!"):
		return s.readScript(text)
	case strings.Contains(text, nodeadmVersion):
		return s.readNodeConfig(text)
	}
	return s.readBottlerocket(text)
}

func isMIME(text string) bool {
	return strings.HasPrefix(text, "MIME-Version:") || strings.HasPrefix(text, "Content-Type:")
}

// readMIME reads the parts in their order. What is neither a NodeConfig nor a
// script is for others than the kubelet.
func (s *Settings) readMIME(text string) error {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("user data is no MIME document: %w", err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("user data: content type: %w", err)
	}
	for parts := multipart.NewReader(message.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("user data: next MIME part: %w", err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return fmt.Errorf("user data: read MIME part: %w", err)
		}
		kind, _, _ := strings.Cut(part.Header.Get("Content-Type"), ";")
		switch strings.TrimSpace(kind) {
		case "application/node.eks.aws":
			err = s.readNodeConfig(string(content))
		case "text/x-shellscript":
			err = s.readScript(string(content))
		}
		if err != nil {
			return err
		}
	}
}

// refusedLabels says what a kubelet does not start with: labels of Kubernetes
// that are not meant for it.
func refusedLabels(labels map[string]string) error {
	for key := range labels {
		domain, _, qualified := strings.Cut(key, "/")
		if !qualified || !ofKubernetes(domain) {
			continue
		}
		if within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io") || kubeletLabels()[key] {
			continue
		}
		return fmt.Errorf("the kubelet does not start: unknown 'kubernetes.io' or 'k8s.io' label specified with --node-labels: %s", key)
	}
	return nil
}

func ofKubernetes(domain string) bool {
	return within(domain, "kubernetes.io") || within(domain, "k8s.io")
}

func within(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

// kubeletLabels are those that a kubelet may set on its Node.
func kubeletLabels() map[string]bool {
	return map[string]bool{
		corev1.LabelHostname: true, corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true,
		corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true,
		corev1.LabelInstanceType: true, corev1.LabelInstanceTypeStable: true,
		corev1.LabelOSStable: true, corev1.LabelArchStable: true, "beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true,
	}
}
