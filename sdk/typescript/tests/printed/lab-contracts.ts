// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type * as kit from "assize"
import type { Known } from "./known.js"

interface AtomicTask {
  // 核心字段（不可变）
  id: string                    // 任务唯一标识
  name: string                  // 任务名称
  type: string                  // 能力类型（如 "intent", "dialogue"）

  // 输入输出
  input: unknown                // 任务输入（类型由模块定义）
  expected?: unknown            // 期望输出（用于评估）

  // 上下文
  context?: Record<string, unknown>  // 额外上下文信息

  // 元数据
  metadata: {
    tags?: string[]             // 标签（用于分类）
    priority?: number           // 优先级
    timeout?: number            // 超时时间（毫秒）
  }

  // 扩展点（模块自定义字段必须放这里）
  extensions?: Record<string, unknown>
}

interface ScenarioTask {
  // 基本信息
  id: string
  name: string
  description: string

  // 步骤定义
  steps: AtomicTask[]           // 按顺序执行的原子任务

  // 数据流定义（显式声明步骤间的数据传递）
  input_map: {
    [stepName: string]: {
      from: string              // 数据来源："step:previous" 或 "input:field"
      to: string                // 目标字段
    }[]
  }

  // 元数据
  metadata: Record<string, unknown>
}

interface RunRecord {
  // 基本信息
  id: string
  taskId: string
  taskType: 'atomic' | 'scenario'

  // 执行状态
  status: 'pending' | 'running' | 'completed' | 'failed'

  // 结果
  output?: unknown
  error?: {
    message: string
    step?: string               // 失败的步骤（Scenario 专用）
    stack?: string
  }

  // 性能指标
  metrics: {
    latency: number             // 执行耗时（毫秒）
    tokens?: number             // Token 消耗
    cost?: number               // 成本（美元）
  }

  // Trace（一等公民，必须字段）
  trace: TraceEvent[]

  // Scenario 专用
  steps?: StepSummary[]         // 步骤摘要

  // 时间戳
  startedAt: Date
  completedAt?: Date

  // 可复现性保证
  provenance: {
    runnerId: string            // 使用的 Runner ID
    runnerVersion: string       // Runner 版本
    config: Record<string, unknown>  // 运行时配置
  }
}

interface TraceEvent {
  timestamp: Date
  level: 'info' | 'debug' | 'warn' | 'error'
  step?: string                 // 所属步骤（Scenario 专用）
  event: string                 // 事件名称
  data?: unknown                // 事件数据
}

interface StepSummary {
  stepId: string
  stepName: string
  status: 'completed' | 'failed' | 'skipped'
  latency: number
  output?: unknown
  error?: string
}

interface ScoreRecord {
  // 基本信息
  id: string
  runId: string                 // 关联的 RunRecord ID

  // 指标
  metric: string                // 指标名称（如 "accuracy", "latency"）
  value: number | boolean | string  // 指标值

  // 评估目标
  target: 'final' | 'global' | `step:${string}`
  // - final: 评估最终输出
  // - global: 评估整体过程
  // - step:xxx: 评估特定步骤

  // 证据（可解释性）
  evidence?: {
    explanation?: string        // 评分解释
    snippets?: string[]         // 相关片段
    alignment?: Record<string, unknown>  // 对齐数据
  }

  // 评估器信息
  evaluatorId: string

  // 时间戳
  createdAt: Date
}

interface Runner {
  id: string                    // Runner 唯一标识
  type: string                  // 能力类型
  version: string               // 版本号

  execute(
    task: AtomicTask,
    config: unknown
  ): Promise<RunRecord>
}

interface Evaluator {
  id: string                    // Evaluator 唯一标识
  metrics: string[]             // 支持的指标列表

  evaluate(
    run: RunRecord,
    task: AtomicTask
  ): Promise<ScoreRecord[]>
}

// Who implements what is printed implements the kit's contracts, and is given what is printed.
declare const runner: Runner
declare const evaluator: Evaluator
declare const task: Known<kit.AtomicTask>
declare const chain: Known<kit.ScenarioTask>
declare const run: Known<kit.RunRecord>
declare const score: ScoreRecord
declare const record: RunRecord
export const implemented: [kit.Runner, kit.Evaluator, kit.Written<kit.ScoreRecord>, kit.Written<kit.RunRecord>] = [runner, evaluator, score, record]
export const given: [AtomicTask, ScenarioTask, RunRecord] = [task, chain, run]
