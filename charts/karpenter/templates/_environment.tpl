{{/* The environment of the controller: the variables of its settings. */}}
{{- define "karpenter.environment" -}}
{{- $s := .Values.settings -}}
- name: KUBERNETES_MIN_VERSION
  value: 1.19.0-0
- name: KARPENTER_SERVICE
  value: {{ include "karpenter.fullname" . }}
- name: CLOUD_PROVIDER
  value: {{ $s.cloudProvider }}
- name: METRICS_PORT
  value: {{ .Values.controller.metrics.port | quote }}
- name: HEALTH_PROBE_PORT
  value: {{ .Values.controller.healthProbe.port | quote }}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      divisor: 1m
      resource: requests.cpu
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      divisor: "0"
      resource: limits.memory
- name: FEATURE_GATES
  value: {{ include "karpenter.featureGates" $s.featureGates | quote }}
{{- if eq $s.cloudProvider "aws" }}
- name: AWS_FEATURE_GATES
  value: {{ include "karpenter.awsFeatureGates" $s | quote }}
{{- end }}
{{- with include "karpenter.ignoreDRA" $s }}
- name: IGNORE_DRA_REQUESTS
  value: {{ . | quote }}
{{- end }}
- name: NOMINATE_PODS
  value: {{ $s.nominatePods | quote }}
- name: PROVISIONING_REQUESTS
  value: {{ $s.provisioningRequests | quote }}
- name: EVICTION_REQUESTS
  value: {{ $s.evictionRequests | quote }}
{{- if ne $s.cloudProvider "kwok" }}
- name: VM_MEMORY_OVERHEAD_PERCENT
  value: {{ $s.vmMemoryOverheadPercent | quote }}
{{- end }}
{{- range $name, $value := dict
  "LOCATION" $s.azure.location
  "AZURE_SUBSCRIPTION_ID" $s.azure.subscriptionID
  "ARM_RESOURCE_GROUP" $s.azure.resourceGroup
  "AZURE_NODE_RESOURCE_GROUP" $s.azure.nodeResourceGroup
  "VNET_SUBNET_ID" $s.azure.vnetSubnetID
  "PROVISION_MODE" $s.azure.provisionMode
  "AKS_MACHINES_POOL_NAME" $s.azure.machinesPoolName
  "SSH_PUBLIC_KEY" $s.azure.sshPublicKey
  "KUBELET_IDENTITY_CLIENT_ID" $s.azure.kubeletIdentityClientID
  "NODE_IDENTITIES" $s.azure.nodeIdentities
  "SIG_SUBSCRIPTION_ID" $s.azure.sigSubscriptionID
  "NETWORK_PLUGIN" $s.azure.networkPlugin
  "ADDITIONAL_TAGS" $s.azure.additionalTags
  "ARM_CLOUD" $s.azure.cloud
  "METRICS_SECURE" .Values.controller.metrics.secure
  "METRICS_CERT_DIR" .Values.controller.metrics.certDir
  "LOG_LEVEL" .Values.logLevel
  "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths)
  "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths)
  "BATCH_MAX_DURATION" $s.batchMaxDuration
  "BATCH_IDLE_DURATION" $s.batchIdleDuration
  "SURGE_FIRST_TIMEOUT" $s.surgeFirstTimeout
  "PREFERENCE_POLICY" $s.preferencePolicy
  "MIN_VALUES_POLICY" $s.minValuesPolicy
  "DISABLE_CLUSTER_STATE_OBSERVABILITY" $s.disableClusterStateObservability
  "SCHEDULER_CONFIG" $s.schedulerConfig
  "CAPACITY_BUFFER_NAMESPACE_LIMITS" $s.capacityBufferNamespaceLimits
  "ADDITIONAL_NODE_PRICE" $s.additionalNodePrice
  "ADDITIONAL_VCPU_PRICE" $s.additionalVCPUPrice
  "PREFERENCE_PREMIUM" $s.preferencePremium
  "PREFERENCE_ALLOWANCE" $s.preferenceAllowance
  "MAX_SPOT_POOL_SHARE" $s.maxSpotPoolShare
  "NODE_COUNT_PREMIUM" $s.nodeCountPremium
  "CONSOLIDATION_PAYBACK_TIME" $s.consolidationPaybackTime
  "CONSOLIDATION_SAVINGS_THRESHOLD" $s.consolidationSavingsThreshold
  "REBALANCE_PREMIUM" $s.rebalancePremium
  "LEGACY_NODE_REPAIR" $s.legacyNodeRepair
  "CLUSTER_NAME" $s.clusterName
  "CLUSTER_ENDPOINT" $s.clusterEndpoint
  "CLUSTER_CA_BUNDLE" $s.clusterCABundle
  "ISOLATED_VPC" $s.isolatedVPC
  "EKS_CONTROL_PLANE" $s.eksControlPlane
  "ENABLE_ZONAL_SHIFT" $s.enableZonalShift
  "DISABLE_DRY_RUN" $s.disableDryRun
  "INTERRUPTION_QUEUE" $s.interruptionQueue
  "RESERVED_ENIS" $s.reservedENIs
  "AMI_REFRESH_INTERVAL" $s.amiRefreshInterval
  "SUBNET_REFRESH_INTERVAL" $s.subnetRefreshInterval
  "SECURITY_GROUP_REFRESH_INTERVAL" $s.securityGroupRefreshInterval
}}
{{- include "karpenter.env" (dict "name" $name "value" $value "root" $) }}
{{- end }}
{{- end }}

{{- define "karpenter.featureGates" -}}
NodeRepair={{ .nodeRepair }},ReservedCapacity={{ .reservedCapacity }},SpotToSpotConsolidation={{ .spotToSpotConsolidation }},NodeOverlay={{ .nodeOverlay }},StaticCapacity={{ .staticCapacity }},CapacityBuffer={{ .capacityBuffer }},TerminateFirstDrift={{ .terminateFirstDrift }},TerminateFirstRepair={{ .terminateFirstRepair }},PodDeletionCostManagement={{ .podDeletionCostManagement }}
{{- end }}

{{/* enableDRA stands for both DRA gates. A gate that is null is left to its default. */}}
{{- define "karpenter.awsGate" -}}
{{- if index . 1 }}{{ index . 0 }}=true,{{ else if kindIs "bool" (index . 2) }}{{ index . 0 }}={{ index . 2 }},{{ end }}
{{- end }}

{{- define "karpenter.awsFeatureGates" -}}
{{- $g := .awsFeatureGates -}}
NodeClassCEL={{ $g.nodeClassCEL }},{{ include "karpenter.awsGate" (list "DRANVIDIAGPU" .enableDRA $g.draNVIDIAGPU) }}{{ include "karpenter.awsGate" (list "DRAEFA" .enableDRA $g.draEFA) }}RebootForRepair={{ $g.rebootForRepair }}
{{- end }}

{{- define "karpenter.ignoreDRA" -}}
{{- if or .enableDRA .awsFeatureGates.draNVIDIAGPU .awsFeatureGates.draEFA }}false{{ else if kindIs "bool" .ignoreDRARequests }}{{ .ignoreDRARequests }}{{ end }}
{{- end }}

{{/* The affinity of values, with the controller's labels where pod anti-affinity names none. */}}
{{- define "karpenter.affinity" -}}
{{- $affinity := deepCopy .Values.affinity }}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) }}
{{- range (dig "podAntiAffinity" "requiredDuringSchedulingIgnoredDuringExecution" list $affinity) }}
{{- if not .labelSelector }}{{ $_ := set . "labelSelector" $selector }}{{ end }}
{{- end }}
{{- range (dig "podAntiAffinity" "preferredDuringSchedulingIgnoredDuringExecution" list $affinity) }}
{{- if not .podAffinityTerm.labelSelector }}{{ $_ := set .podAffinityTerm "labelSelector" $selector }}{{ end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}
